"""The address of a SQLAlchemy engine's database, so that it is written down once."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from . import LIBPQ_WORDS


class _Url(Protocol):
    @property
    def drivername(self) -> str: ...

    @property
    def database(self) -> str | None: ...

    @property
    def query(self) -> Mapping[str, Any]: ...

    def render_as_string(self, hide_password: bool = True) -> str: ...

    def set(self, *, drivername: str, database: str | None, query: Mapping[str, Any]) -> "_Url": ...


class HasUrl(Protocol):
    """An Engine or an AsyncEngine."""

    @property
    def url(self) -> _Url: ...


# Laneway has its own driver for each database, unless the name asks for one that it knows.
_KEPT = ("postgresql+asyncpg", "postgresql+psycopg")
# What says where the server is and how it is protected. The rest is for the engine's own driver.
_ASYNCPG_WORDS = frozenset(("passfile", "service", "target_session_attrs", "krbsrvname", "gsslib"))
_MYSQL_WORDS = frozenset(
    ("unix_socket", "connect_timeout", "ssl_ca", "ssl_cert", "ssl_key", "ssl_mode")
)


def url_of(engine: HasUrl) -> str:
    """For ``Queue`` or ``AsyncQueue``; it holds the password. What the engine was told by
    ``connect_args`` is not in it.

    >>> queue = Queue(url_of(engine))
    """
    url = engine.url
    dialect = url.drivername.partition("+")[0]
    name = url.drivername if url.drivername in _KEPT else dialect
    database = url.database
    if dialect == "sqlite" and database is not None:
        database = database.removeprefix("file:")
    plain = url.set(drivername=name, database=database, query={})
    # SQLAlchemy leaves spaces as they are, and writes them as + after the question mark: libpq and
    # others take neither for a space.
    address = plain.render_as_string(hide_password=False).replace(" ", "%20")
    options = _options(url.drivername, url.query)
    return f"{address}?{urlencode(options, quote_via=quote)}" if options else address


def _options(drivername: str, query: Mapping[str, Any]) -> dict[str, str]:
    if drivername.startswith("postgresql"):
        known, ours = LIBPQ_WORDS, _place(query)
        if drivername == "postgresql+asyncpg":
            known = _ASYNCPG_WORDS
            ours |= {"sslmode": query["ssl"]} if "ssl" in query else {}
    elif drivername.startswith(("mysql", "mariadb")):
        unnamed = str(query.get("ssl_check_hostname", "")).lower() in ("false", "0", "no", "off")
        known, ours = _MYSQL_WORDS, {"ssl_mode": "VERIFY_CA"} if unnamed else {}
    else:
        return {}
    return ours | {name: query[name] for name in query if name in known}


def _place(query: Mapping[str, Any]) -> dict[str, str]:
    """A socket, or several servers, which SQLAlchemy writes as ``host=a:1&host=b:2``."""
    hosts, ports = _list(query.get("host")), _list(query.get("port"))
    if not ports:
        pairs = [_with_port(host) for host in hosts]
        hosts, ports = [host for host, _ in pairs], [port for _, port in pairs if port]
    found = {"host": ",".join(hosts), "port": ",".join(ports)}
    return {name: value for name, value in found.items() if value}


def _list(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _with_port(host: str) -> tuple[str, str]:
    name, _, port = host.rpartition(":")
    return (name, port) if name and port.isdigit() else (host, "")
