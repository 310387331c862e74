"""Schedules: read, computed and written under the write lock, so that no other client can change
them in between."""

import json
from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import timedelta
from typing import Any

from laneway.engines.publish import Key, Publisher, publish_firings, publish_now
from laneway.engines.times import micros, moment
from laneway.model import Published
from laneway.plan import Plan, Row
from laneway.schedule import FireReport, Schedule, ScheduleTerms
from laneway.schedule_rules import firing, paused, planned, resumed

from .base import SqliteSql, WriteState, listed
from .publish import SqlitePublish, SqliteTopics

_HEADERS, _PAUSED = 14, 21
_LENGTHS = (3, 7, 12, 17)
_TIMES = (5, 20, 22, 23, 24)
_ZERO = timedelta(0)


class SqliteSchedules:
    def __init__(self, sql: SqliteSql, publish: SqlitePublish, topics: SqliteTopics) -> None:
        self._sql = sql
        self._publish = publish
        self._topics = topics

    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        """Writes nothing if the terms are unchanged."""
        rows = yield self._sql.read_outside("schedule_read", terms.queue, terms.name)
        stored = _schedule(rows[0]) if rows else None
        if stored is not None and planned(terms, stored, moment(self._sql.now())) is None:
            return stored
        state = yield from self._sql.begin_write(turns=1)
        stored = yield from self._stored(terms.queue, terms.name)
        wanted = planned(terms, stored, moment(state.now))
        if wanted is None and stored is not None:
            return stored
        assert wanted is not None
        return (yield from self._write(wanted, state))

    def pause_schedule(self, queue: str, name: str, pausing: bool) -> Plan[Schedule | None]:
        state = yield from self._sql.begin_write(turns=1)
        stored = yield from self._stored(queue, name)
        if stored is None or stored.paused == pausing:
            return stored
        wanted = paused(stored) if pausing else resumed(stored, moment(state.now))
        return (yield from self._write(wanted, state))

    def remove_schedule(self, queue: str, name: str) -> Plan[bool]:
        rows = yield self._sql.statement("schedule_remove", queue, name)
        return bool(rows)

    def run_schedule(self, queue: str, name: str) -> Plan[list[Published] | None]:
        state = yield from self._sql.begin_write()
        stored = yield from self._stored(queue, name)
        if stored is None:
            return None
        return (yield from publish_now(self._publisher(), stored, moment(state.now)))

    def schedules(
        self, queue: str | None, name: str | None, limit: int, after: tuple[str, str] | None
    ) -> Plan[list[Schedule]]:
        if queue is not None and name is not None:
            rows = yield self._sql.read_outside("schedule_read", queue, name)
        else:
            rows = yield self._sql.read_outside("schedules", queue, *(after or (None, None)), limit)
        return [_schedule(row) for row in rows]

    def next_firing(self, queues: tuple[str, ...] | None) -> Plan[timedelta | None]:
        rows = yield self._sql.read_outside("schedule_next", _names(queues))
        return _until(rows[0][0], self._sql.now())

    def _publisher(self) -> Publisher:
        return Publisher(
            self._publish.publish,
            self._topics.publish_topic,
            self._topics.subscribers,
            self.free_dead_keys,
        )

    def free_dead_keys(self, keys: Sequence[Key]) -> Plan[set[Key]]:
        freed = set()
        for key in keys:
            rows = yield self._sql.statement("free_dead_key", *key)
            for (letter,) in rows:
                yield self._sql.statement("forget_dead_key", letter)
                freed.add(key)
        return freed

    def fire_due(self, queues: tuple[str, ...] | None, limit: int) -> Plan[FireReport]:
        """Writes nothing if nothing is due."""
        next_in = yield from self.next_firing(queues)
        if next_in != _ZERO:
            return FireReport(0, 0, next_in)
        state = yield from self._sql.begin_write()
        rows = yield self._sql.statement("schedule_due", _names(queues), limit, state.now)
        now = moment(state.now)
        firings = [firing(_schedule(row), now) for row in rows]
        taken = yield from publish_firings(self._publisher(), firings)
        moves = [f.move(t, now) for f, t in zip(firings, taken, strict=True)]
        yield self._sql.many("schedule_move", [_move(move) for move in moves])
        rows = yield self._sql.statement("schedule_next", _names(queues))
        fired = sum(move.fired for move in moves)
        aside = sum(move.error is not None for move in moves)
        return FireReport(fired, aside, _until(rows[0][0], state.now))

    def _stored(self, queue: str, name: str) -> Plan[Schedule | None]:
        rows = yield self._sql.statement("schedule_read", queue, name)
        return _schedule(rows[0]) if rows else None

    def _write(self, wanted: Schedule, state: WriteState) -> Plan[Schedule]:
        """The revision is a turn number: no other edit has it."""
        written = replace(wanted, revision=state.turn)
        values: list[Any] = list(astuple(written))
        values[_HEADERS] = json.dumps(written.headers) if written.headers else None
        for column in (*_LENGTHS, *_TIMES):
            values[column] = micros(values[column])
        yield self._sql.statement("schedule_write", *values)
        return written


def _names(queues: tuple[str, ...] | None) -> str | None:
    return None if queues is None else listed(queues)


def _until(at: int | None, now: int) -> timedelta | None:
    return None if at is None else timedelta(microseconds=max(0, at - now))


def _move(move: Sequence[Any]) -> list[Any]:
    queue, name, revision, *times, fired, error = move
    return [queue, name, revision, *map(micros, times), fired, error]


def _schedule(row: Row) -> Schedule:
    values = list(row)
    for column in _LENGTHS:
        if values[column] is not None:
            values[column] = timedelta(microseconds=values[column])
    for column in _TIMES:
        values[column] = moment(values[column])
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    values[_PAUSED] = bool(values[_PAUSED])
    return Schedule(*values)
