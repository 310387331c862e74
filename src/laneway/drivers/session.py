"""What a new connection to PostgreSQL turns out to be: a session of our own, or a pooler's."""

import logging

from .errors import masked

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
