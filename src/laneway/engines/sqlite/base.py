"""The base of all groups of verbs: named statements, the clock, and the write lock."""

import json
import re
import time
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from laneway.clock import Clock, Clocked
from laneway.engines.times import micros
from laneway.errors import InvalidName
from laneway.names import check_schema
from laneway.plan import Plan, Statement
from laneway.sqlfile import statements

# SQL for SQLite: the schema's name is the prefix of every table, in place of ``laneway_``.

MIGRATIONS = files(__package__) / "migrations"
STATEMENTS = statements(__package__)

# Comments may contain an apostrophe and literals a table's name: both are matched as a whole.
_TOKEN = re.compile(r"""--[^\n]*|'(?:[^']|'')*'|"laneway_(\w+)\"""")


def checked_schema(schema: object) -> str:
    name = check_schema(schema)
    if name.lower() == "sqlite":
        raise InvalidName("SQLite reserves names that begin with sqlite_: use another schema name")
    return name


def table(name: str, schema: str) -> str:
    """The quoted name of a table, index or view."""
    return '"' + f"{schema}_{name}".replace('"', '""') + '"'


def render(text: str, schema: str) -> str:
    """The SQL with the tables of this schema."""

    def replace(match: re.Match[str]) -> str:
        return table(match[1], schema) if match[1] else match[0]

    return _TOKEN.sub(replace, text)


@cache
def statement(name: str, schema: str) -> str:
    """A named statement of this package for this schema."""
    return render(STATEMENTS[name], schema)


class WriteState(NamedTuple):
    """What a verb gets with the write lock: the first of the numbers that it reserved, the backoff
    settings, the time, whether anybody listens to events, whether any queue is claimed by kind,
    whether there are flows, and whether any queue is fair by time."""

    message_id: int
    fence: int
    turn: int
    backoff_initial: int
    backoff_max: int
    now: int
    has_listeners: bool
    by_kind: bool
    has_flows: bool
    fair: bool


class SqliteSql(Clocked):
    """``clock`` replaces the machine's clock, for tests."""

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        self.schema = checked_schema(schema)
        self._own_clock = clock

    def now(self) -> int:
        """The machine's clock: all clients of the file run on this machine."""
        return micros(self._clock()) if self._clock else time.time_ns() // 1000

    def statement(self, name: str, *params: Any) -> Statement:
        return Statement(statement(name, self.schema), params)

    def read_outside(self, name: str, *params: Any) -> Statement:
        """A read outside of the transaction: it neither takes nor waits for the write lock. Commits
        what was written before: after begin_write use ``_statement``."""
        return Statement(statement(name, self.schema), params, outside=True)

    def many(self, name: str, rows: Sequence[Sequence[Any]]) -> Statement:
        """The statement once for each row of parameters; returns no rows."""
        return Statement(statement(name, self.schema), rows, many=True)

    def begin_write(self, *, ids: int = 0, fences: int = 0, turns: int = 0) -> Plan[WriteState]:
        """The first statement of every verb that writes. It takes the write lock, so what is read
        afterwards cannot change before the commit; the time is taken after it."""
        rows = yield self.statement("begin_write", ids, fences, turns)
        message_id, fence, turn, initial, longest, listened_until, by_kind, flows, fair = rows[0]
        now = self.now()
        numbers = (message_id - ids + 1, fence - fences + 1, turn - turns + 1)
        heard = listened_until is not None and listened_until > now
        settings = bool(by_kind), bool(flows), bool(fair)
        return WriteState(*numbers, initial, longest, now, heard, *settings)


def listed(values: Iterable[Any]) -> str:
    """A list as one parameter, for json_each()."""
    return json.dumps(list(values))
