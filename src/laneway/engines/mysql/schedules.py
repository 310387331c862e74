"""Schedules. The database stores them and finds those that are due; when one fires next is computed
in Python, between two statements of the same transaction."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from laneway.engines.publish import Key, Publisher, publish_firings, publish_now
from laneway.engines.times import micros, moment
from laneway.errors import DatabaseFailed
from laneway.model import Published
from laneway.plan import Plan, Row
from laneway.schedule import FireReport, Move, Schedule, ScheduleTerms
from laneway.schedule_rules import firing, paused, planned, resumed

from .base import MysqlSql, data, pair_id, repeatable, text
from .publish import MysqlPublish, MysqlTopics

_ZERO = timedelta(0)
_RETRY_LOCKED = timedelta(seconds=1)  # when to try again what another session has locked
_TRIES = 20

_COLUMNS = [field.name for field in fields(Schedule)]
_DURATIONS = {"every", "grace", "key_window", "expires_in"}
_TIMES = {"start", "anchor", "next_at", "look_at", "last_at", "tick"}
_PLAIN = {"payload", "priority", "max_attempts", "fired", "revision"}


class MysqlSchedules:
    def __init__(self, sql: MysqlSql, publish: MysqlPublish, topics: MysqlTopics) -> None:
        self._sql = sql
        self._publish = publish
        self._topics = topics

    @repeatable
    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        for number in range(_TRIES):
            stored, now = yield from self._read_schedule(terms.queue, terms.name, number > 0)
            wanted = planned(terms, stored, now)
            if wanted is None and stored is not None:
                return stored
            assert wanted is not None
            written = yield from self._write_schedule(wanted, stored)
            if written is not None:
                return written
        raise _contended(terms.name)

    @repeatable
    def pause_schedule(self, queue: str, name: str, pausing: bool) -> Plan[Schedule | None]:
        for number in range(_TRIES):
            stored, now = yield from self._read_schedule(queue, name, number > 0)
            if stored is None or stored.paused == pausing:
                return stored
            wanted = paused(stored) if pausing else resumed(stored, now)
            written = yield from self._write_schedule(wanted, stored)
            if written is not None:
                return written
        raise _contended(name)

    @repeatable
    def remove_schedule(self, queue: str, name: str) -> Plan[bool]:
        rows = yield self._sql.statement("schedule_revision", queue.encode(), name.encode())
        if rows:
            yield self._sql.statement("schedule_remove", queue.encode(), name.encode())
        return bool(rows)

    @repeatable
    def run_schedule(self, queue: str, name: str) -> Plan[list[Published] | None]:
        stored, now = yield from self._read_schedule(queue, name)
        if stored is None:
            return None
        return (yield from publish_now(self._publisher(), stored, now))

    @repeatable
    def schedules(
        self, queue: str | None, name: str | None, limit: int, after: tuple[str, str] | None
    ) -> Plan[list[Schedule]]:
        if queue is not None and name is not None:
            stored, _ = yield from self._read_schedule(queue, name)
            return [] if stored is None else [stored]
        position = (None, None) if after is None else tuple(part.encode() for part in after)
        wanted = None if queue is None else queue.encode()
        rows = yield self._sql.statement("schedules", wanted, *position, limit)
        return [_schedule(row) for row in rows]

    @repeatable
    def next_firing(self, queues: tuple[str, ...] | None) -> Plan[timedelta | None]:
        now = yield from self._time()
        due, next_in = yield from self._next_schedule(queues, now)
        return _ZERO if due else next_in

    def _publisher(self) -> Publisher:
        return Publisher(
            self._publish.publish,
            self._topics.publish_topic,
            self._topics.subscribers,
            self.free_dead_keys,
        )

    def free_dead_keys(self, keys: Sequence[Key]) -> Plan[set[Key]]:
        by_id = {pair_id(queue.encode(), key.encode()): (queue, key) for queue, key in keys}
        rows = yield self._sql.statement("dead_key_holders", list(by_id))
        if not rows:
            return set()
        ids, letters = [bytes(row[0]) for row in rows], [int(row[1]) for row in rows]
        yield self._sql.statement("free_dead_keys", ids, letters)
        yield self._sql.statement("forget_dead_keys", letters)
        return {by_id[id] for id in ids}

    @repeatable
    def fire_due(self, queues: tuple[str, ...] | None, limit: int) -> Plan[FireReport]:
        now = yield from self._time()
        fired = aside = 0
        due = yield from self._lock_due(queues, now, limit)
        if due:
            firings = [firing(schedule, now) for schedule in due]
            taken = yield from publish_firings(self._publisher(), firings)
            moves = [f.move(t, now) for f, t in zip(firings, taken, strict=True)]
            for move in moves:
                yield self._sql.statement("schedule_move", *_move_row(move))
            fired = sum(move.fired for move in moves)
            aside = sum(move.error is not None for move in moves)
            if len(due) == limit or any(move.look_at <= now for move in moves):
                return FireReport(fired, aside, _ZERO)
        locked, next_in = yield from self._next_schedule(queues, now)
        if locked:
            next_in = _RETRY_LOCKED if next_in is None else min(next_in, _RETRY_LOCKED)
        return FireReport(fired, aside, next_in)

    def _lock_due(
        self, queues: tuple[str, ...] | None, now: datetime, limit: int
    ) -> Plan[list[Schedule]]:
        if queues is None:
            rows = yield self._sql.statement("schedule_due", micros(now), limit)
        else:
            names = [queue.encode() for queue in queues]
            rows = yield self._sql.statement("schedule_due_in_queues", micros(now), limit, names)
        return [_schedule(row) for row in rows]

    def _next_schedule(
        self, queues: tuple[str, ...] | None, now: datetime
    ) -> Plan[tuple[bool, timedelta | None]]:
        """Whether one is due, and when the next one after that is."""
        if queues is None:
            rows = yield self._sql.statement("schedule_next", micros(now))
        else:
            names = [queue.encode() for queue in queues]
            rows = yield self._sql.statement("schedule_next_in_queues", micros(now), names)
        due, later = rows[0]
        return due is not None, None if later is None else moment(later) - now

    def _time(self) -> Plan[datetime]:
        rows = yield self._sql.statement("clock", self._sql.now())
        return moment(rows[0][0])

    def _read_schedule(
        self, queue: str, name: str, lock: bool = False
    ) -> Plan[tuple[Schedule | None, datetime]]:
        now = yield from self._time()
        statement = "schedule_read_locked" if lock else "schedule_read"
        rows = yield self._sql.statement(statement, queue.encode(), name.encode())
        return _schedule(rows[0]) if rows else None, now

    def _write_schedule(self, wanted: Schedule, stored: Schedule | None) -> Plan[Schedule | None]:
        """None if it was edited or fired since it was read."""
        yield from self._sql.check_fits([wanted.payload])
        yield from self._sql.server_life()
        ((number,),) = yield self._sql.statement("add_revision")
        new = replace(wanted, revision=int(number))
        queue, name, *rest = _schedule_row(new)
        if stored is None:
            yield self._sql.statement("schedule_add", [(queue, name, *rest)])
        else:
            read = stored.revision, micros(stored.next_at)
            yield self._sql.statement("schedule_change", *rest, queue, name, *read)
        rows = yield self._sql.statement("schedule_revision", queue, name)
        return new if rows and int(rows[0][0]) == new.revision else None


def _contended(name: str) -> DatabaseFailed:
    return DatabaseFailed(f"schedule {name!r} was changed by others at every try: try again")


def _schedule(row: Row) -> Schedule:
    return Schedule(*(_read(name, value) for name, value in zip(_COLUMNS, row, strict=True)))


def _schedule_row(schedule: Schedule) -> tuple[Any, ...]:
    return tuple(_written(name, getattr(schedule, name)) for name in _COLUMNS)


def _move_row(move: Move) -> tuple[Any, ...]:
    return tuple(_written(name, value) for name, value in move._asdict().items())


def _read(name: str, value: Any) -> Any:
    if name == "headers":
        return json.loads(value) if value else {}
    if value is None or name in _PLAIN:
        return value
    if name in _DURATIONS:
        return timedelta(microseconds=int(value))
    if name in _TIMES:
        return moment(value)
    return bool(value) if name == "paused" else text(value)


def _written(name: str, value: Any) -> Any:
    if name == "headers":
        return json.dumps(value).encode() if value else None
    if value is None or name in _PLAIN or name == "paused":
        return value
    if name in _DURATIONS:
        return micros(value)
    return micros(value) if name in _TIMES else data(value)
