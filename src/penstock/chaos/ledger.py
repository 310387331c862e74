"""One append-only file per process, outside of the database: what was tried and what came of it."""

import json
import os
import time
from pathlib import Path
from typing import Any

# Kept from before anything can set the process's clock wrong.
_wall = time.time
_steady = time.monotonic


class Ledger:
    """Every line is with the kernel before the next thing happens, so that a kill loses none."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = os.open(folder / f"{name}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, what: str, **fields: Any) -> None:
        line = {"what": what, "t": _wall(), "m": _steady(), **fields}
        os.write(self._file, (json.dumps(line) + "\n").encode())
