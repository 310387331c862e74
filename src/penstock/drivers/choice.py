"""Which driver a URL asks for. Nothing is imported before it is asked for."""

from urllib.parse import urlsplit

from penstock.errors import DriverMissing, InvalidOption

from .faults import masked
from .runner import AsyncRunner, Runner

_PSYCOPG = ("postgresql", "postgres", "postgresql+psycopg")
_ASYNCPG = ("postgresql+asyncpg",)


def open_runner(url: str, *, pool_size: int, pooler: bool) -> Runner:
    """A runner for the sync world; it connects at its first call."""
    scheme = _scheme(url)
    if scheme in _ASYNCPG:
        raise InvalidOption(f"asyncpg works with AsyncQueue only: {masked(url)}")
    try:
        from .sync_psycopg import PsycopgRunner
    except ImportError as error:
        raise _missing("psycopg 3", "postgresql", error) from error
    return PsycopgRunner(_plain(url), pool_size=pool_size, pooler=pooler)


def open_async_runner(url: str, *, pool_size: int, pooler: bool) -> AsyncRunner:
    """A runner for asyncio; it connects at its first call."""
    if _scheme(url) in _ASYNCPG:
        try:
            from .asyncpg_runner import AsyncpgRunner
        except ImportError as error:
            raise _missing("asyncpg", "asyncpg", error) from error
        return AsyncpgRunner(_plain(url), pool_size=pool_size, pooler=pooler)
    try:
        from .async_psycopg import AsyncPsycopgRunner
    except ImportError as error:
        raise _missing("psycopg 3", "postgresql", error) from error
    return AsyncPsycopgRunner(_plain(url), pool_size=pool_size, pooler=pooler)


def _scheme(url: object) -> str:
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    if scheme not in (*_PSYCOPG, *_ASYNCPG):
        shown = masked(url) if isinstance(url, str) else type(url).__name__
        raise InvalidOption(
            f"no database URL that Penstock knows: {shown}; "
            "use postgresql://, postgresql+psycopg:// or postgresql+asyncpg://"
        )
    return scheme


def _plain(url: str) -> str:
    """What the drivers themselves understand."""
    return "postgresql" + url[len(urlsplit(url).scheme) :]


def _missing(driver: str, extra: str, error: ImportError) -> DriverMissing:
    return DriverMissing(f'{driver} is needed: pip install "penstock[{extra}]" ({error})')
