"""Schedules: the database keeps them and says what is due; when they tick next is decided in
Python, between two statements of one transaction."""

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.engines.firings import publish_firings, publish_now
from penstock.errors import DatabaseFailed
from penstock.firing import firing, paused, planned, resumed
from penstock.model import Published
from penstock.plan import Plan
from penstock.schedule import FireReport, Schedule, ScheduleTerms

from .repeating import repeatable
from .schedule_rows import move_row, row_of, schedule_of
from .times import micros, moment
from .topics import Topics

_ZERO = timedelta(0)
_HELD = timedelta(seconds=1)  # when to look again at what another session holds
_TRIES = 20


class Schedules(Topics):
    @repeatable
    def schedule(self, terms: ScheduleTerms) -> Plan[Schedule]:
        for number in range(_TRIES):
            stored, now = yield from self._read(terms.queue, terms.name, number > 0)
            wanted = planned(terms, stored, now)
            if wanted is None and stored is not None:
                return stored
            assert wanted is not None
            written = yield from self._write(wanted, stored)
            if written is not None:
                return written
        raise DatabaseFailed(f"schedule {terms.name!r} is being edited all the time: try again")

    @repeatable
    def pause_schedule(self, queue: str, name: str, pausing: bool) -> Plan[Schedule | None]:
        for number in range(_TRIES):
            stored, now = yield from self._read(queue, name, number > 0)
            if stored is None or stored.paused == pausing:
                return stored
            wanted = paused(stored) if pausing else resumed(stored, now)
            written = yield from self._write(wanted, stored)
            if written is not None:
                return written
        raise DatabaseFailed(f"schedule {name!r} is being edited all the time: try again")

    @repeatable
    def remove_schedule(self, queue: str, name: str) -> Plan[bool]:
        rows = yield self._say("schedule_revision", queue.encode(), name.encode())
        if rows:
            yield self._say("schedule_remove", queue.encode(), name.encode())
        return bool(rows)

    @repeatable
    def run_schedule(self, queue: str, name: str) -> Plan[list[Published] | None]:
        stored, now = yield from self._read(queue, name)
        if stored is None:
            return None
        return (yield from publish_now(self, stored, now))

    @repeatable
    def schedules(
        self, queue: str | None, name: str | None, limit: int, after: tuple[str, str] | None
    ) -> Plan[list[Schedule]]:
        if queue is not None and name is not None:
            stored, _ = yield from self._read(queue, name)
            return [] if stored is None else [stored]
        place = (None, None) if after is None else tuple(part.encode() for part in after)
        wanted = None if queue is None else queue.encode()
        rows = yield self._say("schedules", wanted, *place, limit)
        return [schedule_of(row) for row in rows]

    @repeatable
    def next_firing(self, queues: tuple[str, ...] | None) -> Plan[timedelta | None]:
        now = yield from self._time()
        due, next_in = yield from self._next(queues, now)
        return _ZERO if due else next_in

    @repeatable
    def fire_due(self, queues: tuple[str, ...] | None, limit: int) -> Plan[FireReport]:
        now = yield from self._time()
        fired = aside = 0
        due = yield from self._due(queues, now, limit)
        if due:
            firings = [firing(schedule, now) for schedule in due]
            taken = yield from publish_firings(self, firings)
            moves = [f.move(t, now) for f, t in zip(firings, taken, strict=True)]
            for move in moves:
                yield self._say("schedule_move", *move_row(move))
            fired = sum(move.fired for move in moves)
            aside = sum(move.error is not None for move in moves)
            if len(due) == limit or any(move.look_at <= now for move in moves):
                return FireReport(fired, aside, _ZERO)
        held, next_in = yield from self._next(queues, now)
        if held:
            next_in = _HELD if next_in is None else min(next_in, _HELD)
        return FireReport(fired, aside, next_in)

    def _due(
        self, queues: tuple[str, ...] | None, now: datetime, limit: int
    ) -> Plan[list[Schedule]]:
        """Locked from here on."""
        if queues is None:
            rows = yield self._say("schedule_due", micros(now), limit)
        else:
            names = [queue.encode() for queue in queues]
            rows = yield self._say("schedule_due_of", micros(now), limit, names)
        return [schedule_of(row) for row in rows]

    def _next(
        self, queues: tuple[str, ...] | None, now: datetime
    ) -> Plan[tuple[bool, timedelta | None]]:
        if queues is None:
            rows = yield self._say("schedule_next", micros(now))
        else:
            names = [queue.encode() for queue in queues]
            rows = yield self._say("schedule_next_of", micros(now), names)
        due, later = rows[0]
        return due is not None, None if later is None else moment(later) - now

    def _time(self) -> Plan[datetime]:
        rows = yield self._say("clock", self._now())
        return moment(rows[0][0])

    def _read(
        self, queue: str, name: str, held: bool = False
    ) -> Plan[tuple[Schedule | None, datetime]]:
        now = yield from self._time()
        query = "schedule_read_held" if held else "schedule_read"
        rows = yield self._say(query, queue.encode(), name.encode())
        return schedule_of(rows[0]) if rows else None, now

    def _write(self, wanted: Schedule, stored: Schedule | None) -> Plan[Schedule | None]:
        """Only if neither an edit nor a firing came between."""
        yield from self._check_fits([wanted.payload])
        ((number,),) = yield self._say("fence")
        new = replace(wanted, revision=int(number))
        queue, name, *rest = row_of(new)
        if stored is None:
            yield self._say("schedule_add", [(queue, name, *rest)])
        else:
            fence = stored.revision, micros(stored.next_at)
            yield self._say("schedule_change", *rest, queue, name, *fence)
        rows = yield self._say("schedule_revision", queue, name)
        return new if rows and int(rows[0][0]) == new.revision else None
