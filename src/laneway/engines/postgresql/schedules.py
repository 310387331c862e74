"""Schedules: the database stores them and finds what is due; the next tick is computed in Python,
between two statements of one transaction."""

import json
from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from typing import Any

from laneway.engines.publish import Key, Publisher, publish_firings, publish_now
from laneway.errors import DatabaseFailed
from laneway.model import Published
from laneway.plan import Plan, Row
from laneway.schedule import FireReport, Schedule, ScheduleTerms
from laneway.schedule_rules import firing, paused, planned, resumed

from .base import PostgresqlSql
from .publish import PostgresqlPublish, PostgresqlTopics

_HEADERS = 14
_ZERO = timedelta(0)
_HELD = timedelta(seconds=1)  # when to look again at a schedule that another session has locked
_TRIES = 20


class PostgresqlSchedules:
    def __init__(
        self, sql: PostgresqlSql, publish: PostgresqlPublish, topics: PostgresqlTopics
    ) -> None:
        self._sql = sql
        self._publish = publish
        self._topics = topics

    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        for _ in range(_TRIES):
            stored, now = yield from self._read(terms.queue, terms.name)
            wanted = planned(terms, stored, now)
            if wanted is None and stored is not None:
                return stored
            assert wanted is not None
            written = yield from self._write(wanted, stored)
            if written is not None:
                return written
        raise DatabaseFailed(f"schedule {terms.name!r} is being changed by others: try again")

    def pause_schedule(self, queue: str, name: str, pausing: bool) -> Plan[Schedule | None]:
        for _ in range(_TRIES):
            stored, now = yield from self._read(queue, name)
            if stored is None or stored.paused == pausing:
                return stored
            wanted = paused(stored) if pausing else resumed(stored, now)
            written = yield from self._write(wanted, stored)
            if written is not None:
                return written
        raise DatabaseFailed(f"schedule {name!r} is being changed by others: try again")

    def remove_schedule(self, queue: str, name: str) -> Plan[bool]:
        rows = yield self._sql.statement("schedule_remove", queue, name)
        return bool(rows)

    def run_schedule(self, queue: str, name: str) -> Plan[list[Published] | None]:
        stored, now = yield from self._read(queue, name)
        if stored is None:
            return None
        return (yield from publish_now(self._publisher(), stored, now))

    def schedules(
        self, queue: str | None, name: str | None, limit: int, after: tuple[str, str] | None
    ) -> Plan[list[Schedule]]:
        if queue is not None and name is not None:
            stored, _ = yield from self._read(queue, name)
            return [] if stored is None else [stored]
        rows = yield self._sql.statement("schedules", queue, *(after or (None, None)), limit)
        return [_schedule(row) for row in rows]

    def next_firing(self, queues: tuple[str, ...] | None) -> Plan[timedelta | None]:
        due, next_in = yield from self._next(queues)
        return _ZERO if due else next_in

    def _publisher(self) -> Publisher:
        return Publisher(
            self._publish.publish,
            self._topics.publish_topic,
            self._topics.subscribers,
            self.free_dead_keys,
        )

    def free_dead_keys(self, keys: Sequence[Key]) -> Plan[set[Key]]:
        queues, names = [queue for queue, _ in keys], [key for _, key in keys]
        rows = yield self._sql.statement("free_dead_keys", queues, names)
        return {(queue, key) for queue, key in rows}

    def fire_due(self, queues: tuple[str, ...] | None, limit: int) -> Plan[FireReport]:
        names = None if queues is None else list(queues)
        rows = yield self._sql.statement_now("schedule_due", names, limit)
        if rows:
            now: datetime = rows[0][-1]
            firings = [firing(_schedule(row[:-1]), now) for row in rows]
            taken = yield from publish_firings(self._publisher(), firings)
            moves = [f.move(t, now) for f, t in zip(firings, taken, strict=True)]
            yield self._sql.statement("schedule_move", *map(list, zip(*moves, strict=True)))
            fired = sum(move.fired for move in moves)
            failed = sum(move.error is not None for move in moves)
            if len(rows) == limit or any(move.look_at <= now for move in moves):
                return FireReport(fired, failed, _ZERO)
        else:
            fired = failed = 0
        held, next_in = yield from self._next(queues)
        if held:
            next_in = _HELD if next_in is None else min(next_in, _HELD)
        return FireReport(fired, failed, next_in)

    def _next(self, queues: tuple[str, ...] | None) -> Plan[tuple[bool, timedelta | None]]:
        names = None if queues is None else list(queues)
        rows = yield self._sql.statement_now("schedule_next", names)
        due, next_in = rows[0]
        return due, next_in

    def _read(self, queue: str, name: str) -> Plan[tuple[Schedule | None, datetime]]:
        rows = yield self._sql.statement_now("schedule_read", queue, name)
        *values, now = rows[0]
        return None if values[0] is None else _schedule(values), now

    def _write(self, wanted: Schedule, stored: Schedule | None) -> Plan[Schedule | None]:
        """Only if nobody edited or fired it since it was read."""
        values: list[Any] = list(astuple(wanted))[:-1]
        values[_HEADERS] = json.dumps(wanted.headers) if wanted.headers else None
        fence = (None, None) if stored is None else (stored.revision, stored.next_at)
        rows = yield self._sql.statement("schedule_write", *values, *fence)
        return replace(wanted, revision=rows[0][0]) if rows else None


def _schedule(row: Row) -> Schedule:
    values = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return Schedule(*values)
