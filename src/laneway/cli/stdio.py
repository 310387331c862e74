"""stdin, stdout and stderr that a command can rely on: they are open, can encode every character,
and a failed write to stdout is reported."""

import codecs
import io
import json
import os
import sys
from typing import Any, TextIO

_ESCAPING = "laneway-escape"


class OutputLost(Exception):
    """stdout could not be written to."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(
            f"cannot write to stdout: {cause.strerror}; what was done before is not undone"
        )
        self.reader_has_enough = isinstance(cause, BrokenPipeError)


def set_up_streams() -> None:
    """In the order of their numbers, so that no database file gets the number of a closed one."""
    sys.stdin = sys.stdin or _nothing("r")
    sys.stdout = _watched(sys.stdout or _closed_stdout())
    sys.stderr = sys.stderr or _nothing("w")


def _nothing(mode: str) -> Any:
    return open(os.devnull, mode)


def _closed_stdout() -> TextIO:
    """Opened for reading, so that only a command that writes to it fails."""
    return open(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)


def _watched(stream: Any) -> TextIO:
    codecs.register_error(_ESCAPING, _escaped)
    return io.TextIOWrapper(
        io.BufferedWriter(_Watched(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=_ESCAPING if stream.errors == "strict" else stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _Watched(io.FileIO):
    """The file below stdout: its errors must not be taken for those of other files.

    Only write() is overridden: input() uses the rest and would lose a Ctrl-C in Python code there.
    """

    _lost = False

    def write(self, data: Any) -> int:
        # What is left in buffers is written again at exit; the error was reported already.
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            raise OutputLost(error) from None


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """As JSON escapes, so that JSON stays JSON in any encoding."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
