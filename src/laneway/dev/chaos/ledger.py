"""One append-only file per process, outside the database: what was tried and its result."""

import json
import os
import time
from pathlib import Path
from typing import Any

# Taken before anything can shift the process's clock.
_wall = time.time
_steady = time.monotonic


class Ledger:
    """Every line is written to the kernel at once, so that a kill loses none."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(self, what: str, **fields: Any) -> None:
        line = {"what": what, "t": _wall(), "m": _steady(), **fields}
        os.write(self._file, (json.dumps(line) + "\n").encode())


def error_fields(error: Exception) -> dict[str, str]:
    """What the checker needs to know of an error; ``state`` is the database's own word for it."""
    state = getattr(error, "sqlstate", None) or ""
    return {"type": type(error).__name__, "state": str(state), "error": str(error)}
