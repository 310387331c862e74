"""What every group of verbs stands on: the schema's SQL, the clock, and the state row."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from penstock.plan import Plan, Statement

from . import sqltext
from .times import micros

Clock = Callable[[], datetime]


class State(NamedTuple):
    """What a writing verb was given: the first of its numbers, when it got the write lock, and
    whether anybody listens to events."""

    message_id: int
    fence: int
    turn: int
    backoff_first: int
    backoff_most: int
    now: int
    heard: bool


class Base:
    """``clock`` replaces the machine's clock, for tests."""

    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        self.schema = sqltext.checked_schema(schema)
        self._clock = clock

    def _now(self) -> int:
        """Whoever has the file open is on this machine, so its clock is the one clock."""
        return micros(self._clock()) if self._clock else time.time_ns() // 1000

    def _say(self, name: str, *params: Any) -> Statement:
        return Statement(sqltext.query(name, self.schema), params)

    def _look(self, name: str, *params: Any) -> Statement:
        """A read that decides whether there is anything to write."""
        return Statement(sqltext.query(name, self.schema), params, look=True)

    def _each(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        return Statement(sqltext.query(name, self.schema), rows, many=True)

    def _begin(self, *, ids: int = 0, fences: int = 0, turns: int = 0) -> Plan[State]:
        """The first statement of every verb that writes: it takes the write lock, so all that is
        read afterwards, and the time too, is of this transaction's moment."""
        rows = yield self._say("begin", ids, fences, turns)
        message_id, fence, turn, first, most, heard_until = rows[0]
        now = self._now()
        numbers = (message_id - ids + 1, fence - fences + 1, turn - turns + 1)
        return State(*numbers, first, most, now, heard_until is not None and heard_until > now)


def listed(values: Iterable[Any]) -> str:
    """A list as one parameter, for json_each."""
    return json.dumps(list(values))
