"""Which driver a URL asks for. Nothing is imported before it is asked for."""

import re
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from laneway.extras import needs

from .database_url import dialect_url, scheme_of
from .deadline import CALL_TIMEOUT
from .listener import LocalNotifier, Notifier
from .postgresql import check_postgresql_url
from .runner import AsyncRunner, Runner


class Driver(NamedTuple):
    """Runners as ``module:class`` of this package, None where the driver is for asyncio alone;
    the notifier as ``module:function``, None where workers only poll.

    ``dialect`` is the engine's name, and the scheme that the driver itself understands.
    """

    dialect: str
    database: str
    sync: str | None
    asyncio: str
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
    "postgresql+asyncpg": _ASYNCPG,
    "mysql": _MYSQL,
    "sqlite": _SQLITE,
}
"""By scheme, as database_url() has it."""


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
    if driver.sync is None:  # it is for the application's event loop
        driver = DRIVERS[driver.dialect]
    assert driver.sync is not None
    options = _runner_options(driver, pool_size, pooler, call_timeout, lends)
    runner: Runner = _load(driver, driver.sync)(dialect_url(url), **options)
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
    options = _runner_options(driver, pool_size, pooler, call_timeout, lends)
    runner: AsyncRunner = _load(driver, driver.asyncio)(dialect_url(url), **options)
    return runner


OWN_POOL = "laneway"
"""The logging name of the pools behind ``open_sessions``, by which others know them."""


def open_sessions(url: str, pool_size: int, pooler: bool, *, is_async: bool) -> Any:
    """Lends sessions of SQLAlchemy, on PostgreSQL."""
    from .sessions import AsyncSessionLender, SessionLender

    asyncpg = driver_of(url).sync is None
    if is_async:
        return AsyncSessionLender(
            dialect_url(url), asyncpg=asyncpg, pool_size=pool_size, pooler=pooler
        )
    return SessionLender(dialect_url(url), pool_size=pool_size, pooler=pooler)


def open_notifier(
    url: str, *, channel: str | None, wanted: frozenset[str], pooler: bool
) -> Notifier:
    """What wakes an idle worker; needs a running event loop. On PostgreSQL it listens on a
    connection of its own for the ``wanted`` payloads of the notification ``channel``."""
    driver = driver_of(url)
    if driver.notifier is None or pooler:
        return LocalNotifier()
    notifier: Notifier = _load(driver, driver.notifier)(dialect_url(url), channel, wanted)
    return notifier


def driver_of(url: object) -> Driver:
    """For a client of asyncio; raises InvalidOption if the URL is of no database of ours."""
    return DRIVERS[scheme_of(url)]


_HAS_PORT = re.compile(r":\d+$")
_PORTS = {"postgresql": "5432", "mysql": "3306"}


def same_database(url: str) -> tuple[str, ...]:
    """Equal for two URLs that lead to one database, whatever their drivers, users and options."""
    dialect, url = driver_of(url).dialect, dialect_url(url)
    if dialect == "sqlite":
        from .sqlite.url import read_url

        return dialect, read_url(url).path
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    hosts = parts.netloc.rpartition("@")[2].lower() or options.get("host", "localhost")
    port = options.get("port", _PORTS[dialect])
    named = ",".join(h if _HAS_PORT.search(h) else f"{h}:{port}" for h in hosts.split(","))
    name = unquote(parts.path.strip("/")) or options.get("dbname", "") or parts.username or ""
    return dialect, named, options.get("unix_socket", ""), name


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


def _load(driver: Driver, place: str) -> Any:
    module, _, name = place.partition(":")
    with needs(driver.database, driver.package, driver.extra):
        return getattr(import_module(f".{module}", __package__), name)
