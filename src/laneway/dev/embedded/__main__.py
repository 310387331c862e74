"""``python -m laneway.dev.embedded``: a development server, without the command line's extra."""

import argparse
import sys
from pathlib import Path

from .foreground import DATABASES, run_server


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m laneway.dev.embedded",
        description="Run a development server on 127.0.0.1 until Ctrl-C.",
    )
    parser.add_argument("database", nargs="?", choices=DATABASES, default="postgresql")
    parser.add_argument("--directory", type=Path, help="keep the data in this folder")
    parser.add_argument("--port", type=int, help="listen on this port")
    parser.add_argument("--temporary", action="store_true", help="delete the data at the end")
    given = parser.parse_args()
    return run_server(given.database, given.directory, port=given.port, temporary=given.temporary)


if __name__ == "__main__":
    sys.exit(main())
