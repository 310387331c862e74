"""Errors of disks and file systems as our own: a full disk is no reason for a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from laneway.errors import LakeMismatch, LanewayError


@contextmanager
def plainly() -> Iterator[None]:
    """For everything that uses the folder. Staged files do not count, so it can be run again."""
    try:
        yield
    except LanewayError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not _is_arrows(error):
            raise
        said = str(error).partition("\n")[0].strip()
        raise LakeMismatch(
            f"the lake's folder cannot be read or written: {said or type(error).__name__}; "
            "fix that and run it again"
        ) from error


def _is_arrows(error: Exception) -> bool:
    """By its module's name: pyarrow is not imported for this."""
    return any(kind.__module__.startswith("pyarrow") for kind in type(error).__mro__)
