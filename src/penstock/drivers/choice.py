"""Which driver a URL asks for. Nothing is imported before it is asked for."""

from importlib import import_module
from typing import Any, NamedTuple

from penstock.errors import DriverMissing, InvalidOption

from .bell import Bell, QuietBell
from .faults import masked
from .runner import AsyncRunner, Runner


class Driver(NamedTuple):
    """Runners as ``module:class`` of this package, None where the driver has no such world; the
    bell as ``module:function``, None where workers only poll.

    ``dialect`` is the engine's name, and the scheme that the driver itself understands.
    """

    dialect: str
    sync: str | None
    asyncio: str | None
    needs: str
    extra: str
    bell: str | None = None


_PSYCOPG = Driver(
    "postgresql",
    "sync_psycopg:PsycopgRunner",
    "async_psycopg:AsyncPsycopgRunner",
    "psycopg 3",
    "postgresql",
    "psycopg_line:psycopg_bell",
)
_ASYNCPG = Driver(
    "postgresql",
    None,
    "asyncpg_runner:AsyncpgRunner",
    "asyncpg",
    "asyncpg",
    "asyncpg_line:asyncpg_bell",
)
_MYSQL = Driver(
    "mysql",
    "sync_mysql:MysqlRunner",
    "async_mysql:AsyncMysqlRunner",
    "PyMySQL, or asyncmy for asyncio,",
    "mysql",
)

_SQLITE = Driver(
    "sqlite",
    "sqlite_runner:SqliteRunner",
    "sqlite_async:AsyncSqliteRunner",
    "sqlite3",
    "sqlite",
    "sqlite_bell:sqlite_bell",
)

DRIVERS = {
    "postgresql": _PSYCOPG,
    "postgres": _PSYCOPG,
    "postgresql+psycopg": _PSYCOPG,
    "postgresql+asyncpg": _ASYNCPG,
    "sqlite": _SQLITE,
    "sqlite+pysqlite": _SQLITE,
    "sqlite+aiosqlite": _SQLITE,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "mysql+pymysql": _MYSQL,
    "mysql+asyncmy": _MYSQL,
}


def open_runner(url: str, *, pool_size: int, pooler: bool) -> Runner:
    """A runner for the sync world; it connects at its first call."""
    driver = driver_of(url)
    if driver.sync is None:
        raise InvalidOption(f"{driver.needs} works with AsyncQueue only: {masked(url)}")
    runner: Runner = _load(driver, driver.sync)(_plain(url), pool_size=pool_size, pooler=pooler)
    return runner


def open_async_runner(url: str, *, pool_size: int, pooler: bool) -> AsyncRunner:
    """A runner for asyncio; it connects at its first call."""
    driver = driver_of(url)
    if driver.asyncio is None:
        raise InvalidOption(f"{driver.needs} works with Queue only: {masked(url)}")
    load = _load(driver, driver.asyncio)
    runner: AsyncRunner = load(_plain(url), pool_size=pool_size, pooler=pooler)
    return runner


def open_bell(url: str, *, channel: str | None, wanted: frozenset[str], pooler: bool) -> Bell:
    """What wakes a sleeping worker; needs a running event loop. On PostgreSQL it rings for the
    ``wanted`` payloads on the notification ``channel``, heard on a connection of its own."""
    driver = driver_of(url)
    if driver.bell is None or pooler:
        return QuietBell()
    bell: Bell = _load(driver, driver.bell)(_plain(url), channel, wanted)
    return bell


def driver_of(url: object) -> Driver:
    """What the URL's scheme stands for; raises InvalidOption if it is none of ours."""
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    if scheme not in DRIVERS:
        shown = masked(url) if isinstance(url, str) else type(url).__name__
        known = ", ".join(f"{name}://" for name in DRIVERS)
        raise InvalidOption(f"no database URL that Penstock knows: {shown}; use one of {known}")
    return DRIVERS[scheme]


def _plain(url: str) -> str:
    """What the drivers themselves understand."""
    return driver_of(url).dialect + url[url.index(":") :]


def _load(driver: Driver, place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(f".{module}", __package__), name)
    except ImportError as error:
        raise DriverMissing(
            f'{driver.needs} is needed: pip install "penstock[{driver.extra}]" ({error})'
        ) from error
