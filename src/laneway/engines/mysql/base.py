"""What every group of verbs is built on: statements by name, the clock, and repeatable plans."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from laneway.engines.times import micros
from laneway.plan import Plan, Repeatable, Statement

from . import render
from .names import check_prefix
from .packets import ANY_SERVER, check_fits, small_chunks

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

Clock = Callable[[], datetime]


class MysqlBase:
    """``schema`` is the prefix of our tables in the connected database. ``clock`` replaces the
    database's clock, for tests."""

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        self.schema = check_prefix(schema)
        self._clock = clock

    def _statement(self, name: str, *params: Any) -> Statement:
        return render.statement(name, self.schema, params)

    def _union(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """The query once for each row of parameters, in one statement."""
        return render.union(name, self.schema, rows)

    def _insert(self, name: str, rows: Sequence[Sequence[Any]]) -> Plan[None]:
        """Inserts rows in their order, in as many statements as the server's limit requires."""
        for chunk in small_chunks(rows):
            yield self._statement(name, chunk)

    def _check_fits(self, values: Iterable[bytes | None]) -> Plan[None]:
        """Raises PayloadTooLarge before a statement that is too long for the server: it would
        close the connection instead of reporting an error."""
        largest = max(values, key=lambda value: len(value or b""), default=None)
        if largest is not None and 4 * len(largest) > ANY_SERVER:
            rows = yield self._statement("max_allowed_packet")
            check_fits(largest, int(rows[0][0]))

    def _now(self) -> int | None:
        """The time to use, or None for the database's own clock."""
        return micros(self._clock()) if self._clock else None


def repeatable(
    verb: Callable[Concatenate[S, P], Plan[T]],
) -> Callable[Concatenate[S, P], Plan[T]]:
    """Makes the verb's plan a :class:`laneway.plan.Repeatable`: after a deadlock or a lock wait
    timeout rolled the transaction back, whoever owns the transaction may run the plan again."""

    @wraps(verb)
    def start(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        def again() -> Plan[T]:
            return verb(self, *args, **kwargs)

        return Repeatable(again)

    return start
