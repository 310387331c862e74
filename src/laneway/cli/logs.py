"""The log of a command that runs for long, on stderr."""

import logging
import sys

from .output import printable


class _Lines(logging.Formatter):
    """Escapes control characters, so that no name can break a line or control the terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802, theirs
        return printable(super().formatMessage(record))


def log_to_stderr(*, verbose: bool = False, as_json: bool = False) -> None:
    from laneway.worker.telemetry.logs import JsonFormatter

    lines = _Lines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else lines)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
