"""Which driver a URL asks for. Nothing is imported before it is asked for."""

from importlib import import_module
from typing import Any, NamedTuple

from laneway.errors import InvalidOption
from laneway.extras import needs

from .deadline import CALL_TIMEOUT
from .errors import masked
from .listener import LocalNotifier, Notifier
from .postgresql import check_postgresql_url
from .runner import AsyncRunner, Runner


class Driver(NamedTuple):
    """Runners as ``module:class`` of this package, None where the driver has no such world; the
    notifier as ``module:function``, None where workers only poll.

    ``dialect`` is the engine's name, and the scheme that the driver itself understands.
    """

    dialect: str
    database: str
    sync: str | None
    asyncio: str | None
    package: str
    extra: str
    notifier: str | None = None


_PSYCOPG = Driver(
    "postgresql",
    "PostgreSQL",
    "psycopg.sync:PsycopgRunner",
    "psycopg.aio:AsyncPsycopgRunner",
    "psycopg 3",
    "postgresql",
    "psycopg.connection:psycopg_notifier",
)
_ASYNCPG = Driver(
    "postgresql",
    "postgresql+asyncpg://",
    None,
    "asyncpg:AsyncpgRunner",
    "asyncpg",
    "asyncpg",
    "asyncpg:asyncpg_notifier",
)
_MYSQL = Driver(
    "mysql",
    "MySQL",
    "mysql.sync:MysqlRunner",
    "mysql.aio:AsyncMysqlRunner",
    "PyMySQL, or asyncmy for asyncio",
    "mysql",
)

_SQLITE = Driver(
    "sqlite",
    "SQLite",
    "sqlite.runner:SqliteRunner",
    "sqlite.runner:AsyncSqliteRunner",
    "sqlite3",
    "sqlite",
    "sqlite.runner:sqlite_notifier",
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


def open_runner(
    url: str,
    *,
    pool_size: int,
    pooler: bool,
    call_timeout: float | None = CALL_TIMEOUT,
    lends: bool = False,
) -> Runner:
    """A runner for the sync world; it connects at its first call. ``lends``: for connections in a
    transaction, which are somebody else's meanwhile."""
    driver = _checked_driver(url)
    if driver.sync is None:
        raise InvalidOption(
            f"{driver.package} works with AsyncQueue only: for Queue write postgresql:// in "
            f"{masked(url)}"
        )
    options = _runner_options(driver, pool_size, pooler, call_timeout, lends)
    runner: Runner = _load(driver, driver.sync)(_plain(url), **options)
    return runner


def open_async_runner(
    url: str,
    *,
    pool_size: int,
    pooler: bool,
    call_timeout: float | None = CALL_TIMEOUT,
    lends: bool = False,
) -> AsyncRunner:
    """The same for asyncio."""
    driver = _checked_driver(url)
    if driver.asyncio is None:
        raise InvalidOption(
            f"{driver.package} works with Queue only, not with AsyncQueue: {masked(url)}"
        )
    options = _runner_options(driver, pool_size, pooler, call_timeout, lends)
    runner: AsyncRunner = _load(driver, driver.asyncio)(_plain(url), **options)
    return runner


def open_notifier(
    url: str, *, channel: str | None, wanted: frozenset[str], pooler: bool
) -> Notifier:
    """What wakes an idle worker; needs a running event loop. On PostgreSQL it listens on a
    connection of its own for the ``wanted`` payloads of the notification ``channel``."""
    driver = driver_of(url)
    if driver.notifier is None or pooler:
        return LocalNotifier()
    notifier: Notifier = _load(driver, driver.notifier)(_plain(url), channel, wanted)
    return notifier


def driver_of(url: object) -> Driver:
    """What the URL's scheme stands for; raises InvalidOption if it is none of ours."""
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    if scheme not in DRIVERS:
        shown = repr(masked(url)) if isinstance(url, str) else type(url).__name__
        raise InvalidOption(
            f"{shown} is not a database URL that Laneway knows: use one like "
            "postgresql://localhost/shop, mysql://localhost/shop or sqlite:///shop.db"
        )
    return DRIVERS[scheme]


def _checked_driver(url: str) -> Driver:
    driver = driver_of(url)
    if driver.dialect == "postgresql":
        check_postgresql_url(url)
    return driver


def _runner_options(
    driver: Driver, pool_size: int, pooler: bool, call_timeout: float | None, lends: bool
) -> dict[str, Any]:
    options: dict[str, Any] = {"pool_size": pool_size, "pooler": pooler}
    if driver.dialect != "sqlite":  # a file is not at the other end of a wire
        options["call_timeout"] = call_timeout
    if driver.dialect == "postgresql":
        options["lends"] = lends
    return options


def _plain(url: str) -> str:
    """What the drivers themselves understand."""
    return driver_of(url).dialect + url[url.index(":") :]


def _load(driver: Driver, place: str) -> Any:
    module, _, name = place.partition(":")
    with needs(driver.database, driver.package, driver.extra):
        return getattr(import_module(f".{module}", __package__), name)
