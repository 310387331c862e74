"""What ``penstock chaos`` calls."""

import json
import signal
import sys
from pathlib import Path

from penstock import PenstockError
from penstock.embedded import EmbeddedServerError

from .child import keep_quiet
from .run import run
from .telling import tell


def main(
    engine: str,
    seed: int,
    seconds: float,
    url: str | None,
    as_json: bool,
    keep: Path | None,
    patience: float,
    faults: list[str] | None,
    through: str | None,
) -> int:
    """Prints the verdict; 0 if it is good."""
    keep_quiet()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up, as Ctrl-C does
    try:
        verdict = run(engine, seed, seconds, url, keep, patience, faults, through)
    except (EmbeddedServerError, PenstockError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped; what was made is gone.", file=sys.stderr)
        return 130
    print(json.dumps(verdict) if as_json else tell(verdict))
    return 0 if verdict["good"] else 1
