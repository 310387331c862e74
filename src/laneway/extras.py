"""Optional packages: whoever lacks one is told in a sentence how to install it."""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import DriverMissing


@contextmanager
def needs(what: str, package: str, extra: str) -> Iterator[None]:
    """Imports inside raise DriverMissing if the package is not installed.

    >>> with needs("a cron expression", "cronsim", "cron"):
    ...     from cronsim import CronSim
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, DriverMissing) or (error.name or "").startswith("laneway"):
            raise
        # One that is installed and still cannot be imported says why, e.g. a library it lacks.
        why = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        raise DriverMissing(
            f'{what} needs {package}: pip install "laneway[{extra}]"{why}', name=error.name
        ) from error
