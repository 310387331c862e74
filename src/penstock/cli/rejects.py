"""--rejects: bad lines are kept as they were, in a file of their own."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from penstock.errors import InvalidOption, PenstockError

from .lines import Line

Keep = Callable[[Sequence[Line]], None]


class RejectsLost(PenstockError):
    """The file takes no more, on a full disk for example."""


@contextmanager
def keeping(path: Path | None, source: BinaryIO, going_on: bool) -> Iterator[Keep]:
    """What keeps lines; nothing does without a ``path``."""
    if path is None:
        yield lambda lines: None
        return
    file = _opened(path, source, going_on)

    def keep(lines: Sequence[Line]) -> None:
        try:
            file.writelines(line.raw + b"\n" for line in lines)
            file.flush()
        except OSError as error:
            raise RejectsLost(
                f"{path} cannot be written to: {error.strerror}; it may lack bad lines from line "
                f"{lines[0].number} on"
            ) from None

    try:
        yield keep
    finally:
        with suppress(OSError):  # all was flushed, or is known to be lost
            file.close()


def _opened(path: Path, source: BinaryIO, going_on: bool) -> BinaryIO:
    """Whoever goes on with an input keeps what was kept of it before."""
    try:
        if path.exists() and _is_same(path, source):
            raise InvalidOption(f"{path} is the file that is read: name another for --rejects")
        return path.open("ab" if going_on else "wb")
    except OSError as error:
        raise InvalidOption(f"{path} cannot be written to: {error.strerror}") from None


def _is_same(path: Path, source: BinaryIO) -> bool:
    try:
        read = os.fstat(source.fileno())
    except OSError:  # an input that is no file at all
        return False
    return stat.S_ISREG(read.st_mode) and os.path.samestat(read, path.stat())
