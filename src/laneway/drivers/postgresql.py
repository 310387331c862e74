"""What PostgreSQL's drivers share: URLs before anybody connects, and what a new connection turns
out to be."""

import logging
import re
from urllib.parse import parse_qsl, urlsplit

from laneway.errors import InvalidOption, shown

from .errors import masked, unreadable

# What can be said about a postgresql:// URL before anybody connects.

_PORT = re.compile(r":([^:\[\]]*)$")


def check_postgresql_url(url: str) -> None:
    """Ports that are none, and a timeout that is no number: drivers would only find out when they
    connect, each in its own words, and asyncpg would send the timeout to the server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise unreadable(url) from None
    options = dict(parse_qsl(parts.query))
    hosts = parts.netloc.rpartition("@")[2].split(",")
    ports = [found[1] for host in hosts if (found := _PORT.search(host))]
    for port in [*ports, *options.get("port", "").split(",")]:
        if port and not (port.isdecimal() and 0 < int(port) < 65_536):
            raise unreadable(url)
    seconds = options.get("connect_timeout")
    if seconds is not None and not re.fullmatch(r"-?\d{1,9}", seconds.strip()):
        raise InvalidOption(
            f"the URL's option connect_timeout is {shown(seconds)}: it must be a whole number"
        )


# What a new connection to PostgreSQL turns out to be: a session of our own, or a pooler's.

_log = logging.getLogger("laneway")

_LOCK_TIMEOUT = 10.0  # seconds

PROBE = "SELECT pg_backend_pid(), current_setting('default_transaction_isolation')"
"""A pooler invents the process number that it greets with; the server tells the real one."""

READ_COMMITTED = "read committed"

BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '15s'"
)
"""A process of ours that is stopped within a transaction loses it: its locks would make others
wait. Of the transaction, because a session may be a pooler's."""

LOCK_TIMEOUT = (
    "SELECT set_config('lock_timeout', $1, false) WHERE current_setting('lock_timeout') = '0'"
)
"""The server ends a wait for a lock, saying so, before our own patience ends."""


def lock_timeout(call_timeout: float) -> str:
    return f"{int(min(call_timeout / 2, _LOCK_TIMEOUT) * 1000)}ms"


IN_STANDBY = "in_hot_standby"
"""A setting that every server tells at connecting, and again when it changes. A connection to a
standby is not kept: after a fail-over its address may lead to the primary the next time."""


STANDBY = "it is a standby"


class Pooled(Exception):
    """The connection is a pooler's: what is set or prepared on it may be somebody else's next."""


_warned: set[str] = set()


def warn_of_pooler(url: str) -> None:
    """Once for each address: a worker has several clients."""
    if url in _warned:
        return
    _warned.add(url)
    _log.warning(
        "%s leads to a pooler such as PgBouncer: going on without prepared statements and "
        "notifications, as with pooler=True; set pooler=True to say so, or connect to the server "
        "itself",
        masked(url),
    )
