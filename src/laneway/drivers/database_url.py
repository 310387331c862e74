"""The application's own DATABASE_URL, in the words of Laneway's drivers: the one place that reads
which database a URL is for, and which options it has.

A URL may be SQLAlchemy's (``postgresql+asyncpg://…?ssl=require``), a driver's or a host's
(``postgres://``). The driver that it names is the application's: Laneway uses its own for that
database, but asyncpg where it is named.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from urllib.parse import quote, unquote

from laneway.errors import InvalidOption, shown
from laneway.spelling import nearest

from .errors import masked, unreadable

# fmt: off
SCHEMES = {
    "postgresql": (
        "postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg_async",
        "postgresql+psycopg2", "postgresql+psycopg2cffi", "postgresql+pg8000",
    ),
    "postgresql+asyncpg": ("postgresql+asyncpg", "postgres+asyncpg"),
    "mysql": (
        f"{database}{driver}" for database in ("mysql", "mariadb") for driver in (
            "", "+pymysql", "+mysqldb", "+aiomysql", "+asyncmy", "+mysqlconnector",
            "+mariadbconnector",
        )
    ),
    "sqlite": ("sqlite", "sqlite+pysqlite", "sqlite+aiosqlite"),
}
_OURS = {theirs: ours for ours, names in SCHEMES.items() for theirs in names}

LIBPQ_WORDS = frozenset((
    "application_name", "channel_binding", "connect_timeout", "fallback_application_name",
    "gssdelegation", "gssencmode", "gsslib", "hostaddr", "keepalives", "keepalives_count",
    "keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts",
    "max_protocol_version", "min_protocol_version", "options", "passfile", "require_auth",
    "requirepeer", "service", "sslcert", "sslcertmode", "sslcompression", "sslcrl", "sslcrldir",
    "sslkey", "sslkeylogfile", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert",
    "sslsni", "ssl_max_protocol_version", "ssl_min_protocol_version", "target_session_attrs",
    "tcp_user_timeout",
))
"""What libpq itself understands of a connection's options, without who, where and in which
encoding. Frameworks mix them with their own."""

_WHO_AND_WHERE = frozenset(("host", "port", "user", "password", "dbname"))
# asyncpg sends to the server what it does not know: only what the server takes may be among it.
_ASYNCPG_WORDS = _WHO_AND_WHERE | {
    "application_name", "connect_timeout", "gsslib", "krbsrvname", "options", "passfile",
    "service", "sslcert", "sslcrl", "sslkey", "sslmode", "sslnegotiation", "sslpassword",
    "sslrootcert", "ssl_max_protocol_version", "ssl_min_protocol_version", "target_session_attrs",
}
_KNOWN = {
    "postgresql": _WHO_AND_WHERE | LIBPQ_WORDS | {"client_encoding"},
    "postgresql+asyncpg": _ASYNCPG_WORDS,
    "mysql": frozenset((
        "connect_timeout", "ssl_ca", "ssl_cert", "ssl_key", "ssl_mode", "statement_timeout",
        "unix_socket",
    )),
    "sqlite": frozenset(("synchronous",)),
}
# What SQLAlchemy, or the driver that it uses, calls otherwise.
_RENAMED = {
    "postgresql+asyncpg": {"ssl": "sslmode", "timeout": "connect_timeout", "database": "dbname"},
}
# How the application's own connections behave, which is nothing to ours.
_THEIRS = {
    "postgresql": frozenset(("autocommit", "prepare_threshold", "tcp_keepalive")),
    "postgresql+asyncpg": frozenset((
        "command_timeout", "max_cacheable_statement_size", "max_cached_statement_lifetime",
        "prepared_statement_cache_size", "prepared_statement_name_func", "statement_cache_size",
    )),
    "mysql": frozenset((
        "autocommit", "binary_prefix", "charset", "client_flag", "collation", "compress", "echo",
        "init_command", "local_infile", "max_allowed_packet", "maxsize", "minsize",
        "pool_recycle", "program_name", "read_timeout", "sql_mode", "use_unicode",
        "write_timeout",
    )),
    "sqlite": frozenset((
        "cached_statements", "check_same_thread", "detect_types", "isolation_level", "timeout",
        "uri",
    )),
}
# fmt: on
_NO = ("false", "0", "no", "off")

Options = list[tuple[str, str]]
"""Name and value, percent-encoded."""


def database_url(url: object, *, lenient: bool = False) -> str:
    """The same address with one of the schemes of SCHEMES and options that Laneway's drivers know.

    Options that are for the application's own connections are left out; others raise InvalidOption,
    unless ``lenient``: then they are left out as well.
    """
    scheme = scheme_of(url)
    assert isinstance(url, str)
    place, _, query = url[url.index(":") :].partition("?")
    if ":***@" in place:
        raise InvalidOption(
            f"the password in {url} is ***, by which str(engine.url) hides it: use "
            "laneway.integrations.sqlalchemy.url_of(engine)"
        )
    if scheme == "sqlite" and "uri=true" in query.lower():
        place = re.sub("///file(:|%3A)", "///", place, count=1, flags=re.IGNORECASE)
    if not query:
        return scheme + place
    options = _ours(scheme, _read(url, query))
    for name, value in [] if lenient else options:
        _check(url, scheme, name, value)
    known = [(name, value) for name, value in options if name in _KNOWN[scheme]]
    return scheme + place + _joined(known)


def scheme_of(url: object) -> str:
    """The one of SCHEMES for this URL; raises InvalidOption if there is none."""
    if not isinstance(url, str):
        raise InvalidOption(f"{_what(url)} is not a database URL: {_text_for(url)}")
    scheme = url.partition(":")[0].lower()
    if scheme not in _OURS or not _FORM.fullmatch(url):
        raise InvalidOption(f"{masked(url)!r} is not a database URL{_hint_for(url)}")
    return _OURS[scheme]


# SQLite's own reader explains its slashes.
_FORM = re.compile(r"(sqlite[^:]*:|[^:/]+://).*(?<!\s)", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(r"(file:)?[^:@\s]+\.(db|sqlite|sqlite3)", re.IGNORECASE)
_WORDS = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)")
_SHORT = {"pg": "postgresql", "pgsql": "postgresql", "psql": "postgresql"}
_FOREIGN = {"mssql", "oracle", "mongodb", "redis", "rediss", "amqp", "amqps", "duckdb"}
_EXAMPLES = "postgresql://localhost/shop, mysql://localhost/shop or sqlite:///shop.db"


def _what(value: object) -> str:
    return "None" if value is None else f"{shown(value)} ({type(value).__name__})"


def _text_for(value: object) -> str:
    if value is None:
        return "is the environment variable that it comes from set?"
    if isinstance(value, PurePath):
        return f"for a file write {sqlite_url(value)!r}"
    return (
        "it must be text, such as str(settings.database_url); for an engine of SQLAlchemy use "
        "laneway.integrations.sqlalchemy.url_of(engine)"
    )


def sqlite_url(path: PurePath | str) -> str:
    return f"sqlite:///{quote(str(path))}"


def _hint_for(url: str) -> str:
    """What is probably meant by a text that is not a URL of ours."""
    text = url.strip().strip("'\"").strip()
    scheme, _, rest = text.partition("://")
    variable, _, value = text.partition("=")
    if not text:
        return ": it is empty; is DATABASE_URL set?"
    if text != url and scheme.lower() in _OURS:
        return ": remove the quotes, spaces and line breaks around it"
    if scheme.lower().startswith("jdbc:"):
        return ": leave out jdbc:"
    if variable.isidentifier() and value.partition("://")[0].lower() in _OURS:
        return f": leave out {variable}="
    if variable.strip().isidentifier() and _WORDS.match(text) and not rest:
        return f": write it as {_url_of_words(text)}"
    if (plain := re.match(r"([a-z+0-9_]+):?/*(?=\w)", text)) and plain[1] in _OURS:
        return f": write {plain[1]}:// before the host"
    if rest and (near := _near_scheme(scheme.lower())):
        return f": did you mean {near}://?"
    if _FILE.fullmatch(text):
        return f": for a file write {sqlite_url(text.removeprefix('file:'))}"
    return f" that Laneway knows: use one like {_EXAMPLES}"


def _near_scheme(scheme: str) -> str | None:
    database = scheme.partition("+")[0]
    if database in _FOREIGN:
        return None
    near = _SHORT.get(scheme) or nearest(scheme, _OURS, 0.85)
    return near or (database if database in _OURS else nearest(scheme, _OURS))


def _url_of_words(text: str) -> str:
    """libpq's ``host=… dbname=…`` as a URL, without the password."""
    words = {name: value.strip("'") for name, value in _WORDS.findall(text)}
    user = quote(words.get("user", ""), safe="")
    if "password" in words:
        user += ":***"
    port = f":{words['port']}" if "port" in words else ""
    host = words.get("host") or words.get("hostaddr") or "localhost"
    more = [(n, quote(v, safe="")) for n, v in words.items() if n in LIBPQ_WORDS]
    if host.startswith("/"):
        more, host = [("host", quote(host, safe="/")), *more], ""
    name = quote(words.get("dbname", ""), safe="")
    at = "@" if user else ""
    return f"postgresql://{user}{at}{host}{port}/{name}{_joined(more)}"


def dialect_url(url: str) -> str:
    """With the database's own scheme, as drivers and other programs want it."""
    plain = database_url(url)
    return scheme_of(plain).partition("+")[0] + plain[plain.index(":") :]


def _read(url: str, query: str) -> Options:
    options = [(name, value) for name, _, value in (p.partition("=") for p in query.split("&"))]
    # SQLAlchemy writes a space as +; to libpq that is a plus.
    if "+" in url.partition(":")[0]:
        options = [(name, value.replace("+", "%20")) for name, value in options]
    return [(unquote(name), value) for name, value in options if name]


def _ours(scheme: str, options: Options) -> Options:
    renamed = _RENAMED.get(scheme, {})
    found = [(renamed.get(name, name), value) for name, value in options]
    found = [(name, value) for name, value in found if name not in _THEIRS[scheme]]
    if scheme.startswith("postgresql"):
        return _place(found) + [one for one in found if one[0] not in ("host", "port")]
    if scheme == "mysql":
        return list(_without_name_check(found))
    # `mode` of SQLite's own URLs: what others allow is no matter of ours.
    return [(name, value) for name, value in found if (name, value) not in _WRITABLE]


_WRITABLE = (("mode", "rw"), ("mode", "rwc"), ("cache", "private"))


def _without_name_check(options: Options) -> Iterator[tuple[str, str]]:
    for name, value in options:
        if name != "ssl_check_hostname":
            yield name, value
        elif value.lower() in _NO and "ssl_mode" not in dict(options):
            yield "ssl_mode", "VERIFY_CA"


def _place(options: Options) -> Options:
    """A socket, or several servers, which SQLAlchemy writes as ``host=a:1&host=b:2``."""
    hosts = [unquote(value) for name, value in options if name == "host"]
    ports = [unquote(value) for name, value in options if name == "port"]
    if not ports:
        pairs = [_with_port(host) for host in hosts]
        hosts, ports = [host for host, _ in pairs], [port for _, port in pairs if port]
    found = (("host", ",".join(hosts)), ("port", ",".join(ports)))
    return [(name, quote(value, safe="")) for name, value in found if value]


def _with_port(host: str) -> tuple[str, str]:
    name, _, port = host.rpartition(":")
    return (name, port) if name and ":" not in name and port.isdigit() else (host, "")


def _check(url: str, scheme: str, name: str, value: str) -> None:
    if name in _KNOWN[scheme]:
        return
    if "@" in name + value:  # of a password with a question mark in it
        raise unreadable(url)
    if scheme == "sqlite" and (name, value) in (("mode", "memory"), ("cache", "shared")):
        raise InvalidOption(
            f"{masked(url)} is a database in the application's memory, which Laneway cannot "
            "reach: give it a file"
        )
    raise InvalidOption(f"unknown option {shown(name)} in {masked(url)}: {_hint(scheme, name)}")


_WORDS_OF_OTHERS = {"postgresql": {"ssl": "sslmode=require", "timeout": "connect_timeout"}}


def _hint(scheme: str, name: str) -> str:
    known = sorted(_KNOWN[scheme] - _WHO_AND_WHERE)
    if near := _WORDS_OF_OTHERS.get(scheme, {}).get(name) or nearest(name, known):
        return f"write {near}"
    if scheme == "postgresql":
        return "leave it out, or use one of libpq's, such as sslmode or connect_timeout"
    return f"leave it out, or use one of {', '.join(known)}"


def _joined(options: Options) -> str:
    return "?" + "&".join(f"{name}={value}" for name, value in options) if options else ""
