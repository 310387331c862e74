"""Plans: what to say to the database, without saying how; and what a claim answers.

A verb is a generator that yields statements and is sent their rows; a runner of the sync or of
the async world drives it. Plans never begin or commit a transaction.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from .model import ClaimStatus

T = TypeVar("T")

Row = Sequence[Any]


def as_dict(rows: Sequence[Row]) -> dict[Any, Any]:
    """Rows of two columns: the second one by the first."""
    return dict(rows)  # type: ignore[arg-type]


class Statement(NamedTuple):
    """One statement with ``$1`` placeholders, each inside a CAST where the database wants to know
    its type.

    A ``script`` is several statements without parameters, and returns no rows. With ``many`` the
    parameters are a list of rows: the statement is run for each and returns none. ``outside``: a
    read outside of the plan's transaction; what was written before it is committed first, and the
    next write begins a new transaction. ``percent``: the placeholders are ``%s``, in order, as all
    drivers of the database want them. A ``guest`` is run on a caller's connection only. One that
    only ``reads`` can be sent again on another connection. A ``long`` one may take its time: the
    answer is awaited for longer. ``if_free``, on MySQL: it returns no rows, and does nothing, if
    others keep locked what it needs. A ``copy``, on PostgreSQL: the parameters are the bytes that
    COPY reads, piece by piece; only for connections of our own. A standby is not asked what is for
    the ``primary``, though there may be nothing to write: it may not know yet.
    """

    sql: str
    params: Sequence[Any] = ()
    script: bool = False
    many: bool = False
    outside: bool = False
    percent: bool = False
    guest: bool = False
    reads: bool = False
    long: bool = False
    if_free: bool = False
    copy: bool = False
    primary: bool = False


Plan = Generator[Statement, Sequence[Row], T]


class Repeatable(Generator[Statement, Sequence[Row], T]):
    """A plan that a runner may begin anew after it was rolled back, with :meth:`again`."""

    def __init__(self, start: Callable[[], Plan[T]]) -> None:
        self._start = start
        self._plan = start()

    def again(self) -> Plan[T]:
        return self._start()

    def send(self, value: Any) -> Statement:
        return self._plan.send(value)

    def throw(self, kind: Any, value: Any = None, trace: Any = None) -> Statement:
        return self._plan.throw(kind)

    def close(self) -> None:
        self._plan.close()


# What a claim answers.


class ClaimColumn:
    """The columns of a claim's rows. They are read at their places: an object with names for each
    of thousands of rows would cost a tenth of a large claim, most of it in the garbage collector.
    """

    ID = 0
    FENCE = 1
    QUEUE = 2
    CHANNEL = 3
    KIND = 4
    PRIORITY = 5
    ATTEMPT = 6
    MAX_ATTEMPTS = 7
    DUE = 8
    PUBLISHED_AT = 9
    FIRST_PUBLISHED_AT = 10
    EXPIRES_AT = 11
    """These four as seconds since 1970."""
    KEY = 12
    CONTENT_TYPE = 13
    HEADERS = 14
    """JSON text."""
    STATE_TYPE = 15
    STATE = 16
    PAYLOAD = 17
    SPENT = 18
    """Tries that failed since the last progress."""


class Taken(NamedTuple):
    """What a claim answered; ``claimed_at`` and ``until`` hold for all its leases.

    A row has the columns of ClaimColumn; more may follow.
    """

    rows: Sequence[Row]
    status: ClaimStatus
    look_again: timedelta | None
    claimed_at: datetime | None
    until: datetime | None
    paused: Mapping[tuple[str, str], timedelta] = MappingProxyType({})
    """Kinds of these queues that are paused, by queue and kind, and for how long to put their
    messages back. ``laneway.engines.kind_pauses`` does that, so that a claim answers none."""
    limited: bool = False
    """Whether anything of these queues waits for shared limits."""
