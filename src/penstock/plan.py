"""Plans: what to say to the database, without saying how.

A verb is a generator that yields statements and is sent their rows; a runner of the sync or of the
async world drives it. Plans never begin or commit a transaction.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

Row = Sequence[Any]


class Statement(NamedTuple):
    """One statement with ``$1`` placeholders, each inside a CAST where the database wants to know
    its type.

    A ``script`` is many statements without parameters and answers no rows. With ``many`` the
    parameters are a list of rows, the statement is run for each, and answers none. A ``look`` is a
    read outside of the plan's transaction: what was written before it is committed, and what comes
    after it begins a new one. ``percent``: the placeholders are ``%s``, in order, as all drivers of
    the database want them. A ``guest`` is said on a caller's connection only.
    """

    sql: str
    params: Sequence[Any] = ()
    script: bool = False
    many: bool = False
    look: bool = False
    percent: bool = False
    guest: bool = False


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
