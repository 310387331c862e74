"""What drivers raise, in our own terms; and URLs that can be shown."""

import re
from urllib.parse import unquote

from laneway.errors import (
    ConnectionUnavailable,
    DatabaseFailed,
    InvalidOption,
    LanewayError,
    OutcomeUnknown,
    SchemaMissing,
)

# How functions of ours begin what they say, before or behind a wrapper's own words.
_SAID = re.compile(r"(?:^|[:)] )(laneway: [^\n]*)")
_REPEAT = "40"  # the class of serialization failures
_MISSING = {"42883", "42P01", "3F000"}  # function, table, schema
# 08: connection; the others: shutting down, starting up, too many clients, idle and killed.
_AWAY = re.compile("08|57P0[1-5]|53300|25P0[34]")
_AWAY_NAMES = {
    "OperationalError",
    "InterfaceError",
    "InternalClientError",
    "ConnectionDoesNotExistError",
    "PoolTimeout",
    "PoolClosed",
    "TooManyRequests",
}
_MYSQL_MODULES = ("pymysql", "aiomysql", "asyncmy", "MySQLdb")
_MYSQL_MISSING = {1146, 1356}  # a table, a view's table
# Too many connections, shutting down, killed; and what the client finds: no server, gone.
_MYSQL_AWAY = {0, 1040, 1053, 1152, 1184, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
_MYSQL_REPEAT = {1205, 1213, 1020}  # lock wait, deadlock, a record that changed
# Writes, locks, LISTEN and whole kinds of tables that a standby refuses; but a read-only
# transaction refuses writes with the first as well.
_READ_ONLY = {"25006", "0A000", "55000"}
_MYSQL_READ_ONLY = {1290, 1792, 1836, 1874}
# Names and passwords may hold anything themselves, @ and spaces too: rather mask too much.
_CREDENTIALS = re.compile(r"(?<=://)([^:\n]*):(.*)@")
# Of a URL's query, or of a list of words, where a value may be quoted.
_PASSWORD = re.compile(
    r"(?P<query>[?&]\w*password=)(?P<value>[^&\n]+)"
    r"|(?P<word>password\s*=\s*)(?P<text>'(?:[^'\\]|\\.)*'?|\S+)",
    re.IGNORECASE,
)
_CUTS = re.compile(r"[/?#@:&=\s]")

NOT_READ_COMMITTED = "25000"
DEADLOCK = "40P01"
_IDLE_TIMEOUT = "57P05"
LOCK_WAIT = 1205  # of MySQL
LOCK_TIMEOUTS = ("55P03", str(LOCK_WAIT), "SQLITE_BUSY")
"""The states of an error that says: somebody keeps a row, or SQLite's file, locked."""


class WrongServer(OSError):
    """The server takes no writes: it is a standby, or set to read-only. After a fail-over that is
    the old one, and its address leads to the new one sooner or later: the connection is given up,
    so that the next one finds it."""


def masked(url: str) -> str:
    """The URL without its password."""
    shown = _CREDENTIALS.sub(r"\1:***@", url)
    return _PASSWORD.sub(lambda found: f"{found['query'] or found['word']}***", shown)


def unreadable(url: str) -> InvalidOption:
    """For a URL that a driver cannot take apart: its own text may hold a piece of the password."""
    return InvalidOption(
        f"the host or port of {masked(url)} cannot be read: write / ? # @ : and spaces in a user's "
        "name or password as %2F %3F %23 %40 %3A %20"
    )


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of any driver's error, also through SQLAlchemy's and Django's wrapping."""
    for layer in (error, getattr(error, "orig", None), error.__cause__):
        if layer is None:
            continue
        state = getattr(layer, "sqlstate", None) or getattr(layer, "pgcode", None)
        if isinstance(state, str):
            return state
    return None


def mysql_number(error: BaseException) -> int | None:
    """MySQL's own number of an error, also through SQLAlchemy's and Django's wrapping."""
    for layer in (error, getattr(error, "orig", None), error.__cause__):
        if layer is None or type(layer).__module__.split(".")[0] not in _MYSQL_MODULES:
            continue
        if layer.args and isinstance(layer.args[0], int):
            return layer.args[0]
    return None


def must_repeat(error: BaseException) -> bool:
    """Whether MySQL asks to begin the transaction anew."""
    return mysql_number(error) in _MYSQL_REPEAT


def told_by_laneway(error: BaseException) -> LanewayError | None:
    """Our error on a connection that is not ours, for what Laneway says: that it is not there, or
    that a function of it refuses. All else belongs to the connection's owner, and so does what
    asks for the transaction to be repeated: whoever repeats it knows the driver's error."""
    if missing := missing_schema(error):
        return missing
    state = sqlstate(error)
    if state is None or state.startswith(_REPEAT):
        return None
    for layer in (error, getattr(error, "orig", None), error.__cause__):
        if found := _SAID.search(str(layer)):
            return DatabaseFailed(f"the database refused: {found[1]}", state)
    return None


def missing_schema(error: BaseException) -> SchemaMissing | None:
    """Whether the error means that Laneway is not there."""
    number = mysql_number(error)
    states = sqlstate(error) in _MISSING or number in _MYSQL_MISSING
    if not states and not _no_such_table(error):
        return None
    return SchemaMissing(
        "Laneway is not installed in this schema of the database, or an older version is: run "
        "queue.install() or `laneway install`; if a part of it was dropped, `laneway upgrade "
        f"--repair` ({_first_line(error)})"
    )


def _no_such_table(error: BaseException) -> bool:
    """SQLite has no SQLSTATE, only this sentence."""
    layers = (error, getattr(error, "orig", None), error.__cause__)
    return any(
        type(layer).__module__ == "sqlite3" and str(layer).startswith("no such table")
        for layer in layers
    )


def translated(error: Exception, url: str, *, sent: bool = False) -> LanewayError:
    """Our error for a driver's error on a connection of our own. ``sent``: a write was under way,
    and nobody knows what became of it."""
    if isinstance(error, LanewayError):
        return error
    number = mysql_number(error)
    state = sqlstate(error) if number is None else str(number)
    _scrub(error, url)
    text = _without_password(_first_line(error), url)
    if missing := missing_schema(error):
        return missing
    if isinstance(error, WrongServer):
        return ConnectionUnavailable(
            f"{masked(url)} leads to a server that takes no writes, a standby or one that is "
            f"read-only: {text}; the next call connects anew"
        )
    if is_away(error) and sent:
        return OutcomeUnknown(
            f"the connection to {masked(url)} was lost during the call, which may or may not have "
            f"been carried out: {text}"
        )
    if is_away(error):
        return ConnectionUnavailable(f"no connection to {masked(url)}: {text}{_hint(text, url)}")
    if state is None:
        return DatabaseFailed(f"the statement could not be sent to {masked(url)}: {text}")
    return DatabaseFailed(f"the database refused: {text}{_hint(text, url)}", state)


_UNKNOWN_USER = re.compile(
    r'password authentication failed|^Access denied|role ".*" does not exist'
)
_UNKNOWN_DATABASE = re.compile(r'database ".*" does not exist|^Unknown database')


def _hint(text: str, url: str) -> str:
    """What to do about a server that cannot be reached, or does not let us in."""
    if "onnection refused" in text or "Connect call failed" in text:
        return "; is the server running there?"
    if "resolve" in text and url.count("@") > 1:
        return "; write an @ in a password as %40"
    if _UNKNOWN_USER.search(text):
        return "; check the user and the password in the URL"
    if _UNKNOWN_DATABASE.search(text):
        return "; create the database, or correct its name in the URL"
    return ""


def never_ran(error: BaseException) -> bool:
    """Whether the server certainly did nothing: it had ended the session when the statement came,
    or it takes no writes. Also a write may be sent again."""
    layers = (error, error.__cause__)
    return isinstance(error, WrongServer) or _IDLE_TIMEOUT in (
        getattr(layer, "sqlstate", None) for layer in layers
    )


def may_be_read_only(error: BaseException) -> bool:
    """Whether a server that takes no writes refuses like this: the server has to be asked, because
    a transaction that is read-only does so too."""
    if (number := mysql_number(error)) is not None:
        return number in _MYSQL_READ_ONLY
    return sqlstate(error) in _READ_ONLY


def is_away(error: BaseException) -> bool:
    """Whether the connection, rather than the statement, is at fault."""
    if (number := mysql_number(error)) is not None:
        return number in _MYSQL_AWAY
    state = sqlstate(error)
    if state is not None:
        return _AWAY.match(state) is not None
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, OSError) or bool(names & _AWAY_NAMES)


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    if mysql_number(error) and len(error.args) > 1:  # otherwise a tuple in brackets
        text = str(error.args[1]).strip()
    return text.splitlines()[0]


def _without_password(text: str, url: str) -> str:
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return text


def _secrets(url: str) -> list[str]:
    """The password as it may occur in a driver's text: as written, as meant, and in pieces, because
    one with a slash or a hash in it is read as a port or a path."""
    whole = [found[2] for found in _CREDENTIALS.finditer(url)]
    whole += [found["value"] or found["text"].strip("'") for found in _PASSWORD.finditer(url)]
    pieces = [piece for text in whole for piece in _CUTS.split(text)]
    found = {form for text in [*whole, *pieces] for form in (text, unquote(text))}
    # One or two letters are in every sentence.
    return sorted((form for form in found if len(form) > 2), key=len, reverse=True)


def _scrub(error: BaseException | None, url: str) -> None:
    """What we raise shows where it came from, so that must not hold the password either."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if any(isinstance(arg, str) for arg in error.args):
            kept = [_without_password(a, url) if isinstance(a, str) else a for a in error.args]
            error.args = tuple(kept)
        error = error.__cause__ or error.__context__
