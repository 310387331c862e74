"""What disks and file systems say, as our own error: a full one is no reason for a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import LakeMismatch, PenstockError


@contextmanager
def plainly() -> Iterator[None]:
    """For all that touches the folder. What was written aside counts for nothing, so whatever it
    was may be done again."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not _is_arrows(error):
            raise
        said = str(error).partition("\n")[0].strip()
        raise LakeMismatch(
            f"the lake's folder cannot be read or written: {said or type(error).__name__}; "
            "mend that and run it again"
        ) from error


def _is_arrows(error: Exception) -> bool:
    """Known by its name: pyarrow is not imported for this."""
    return any(kind.__module__.startswith("pyarrow") for kind in type(error).__mro__)
