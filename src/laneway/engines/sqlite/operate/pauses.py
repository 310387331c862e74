"""Pauses of whole queues, and of kinds of messages in them."""

from datetime import timedelta

from laneway.engines.sqlite.base import SqliteBase
from laneway.engines.times import micros, moment
from laneway.operations import Pause
from laneway.plan import Plan


class SqlitePauses(SqliteBase):
    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        state = yield from self._begin_write()
        until = None if length is None else state.now + micros(length)
        yield self._statement("delete_pause", queue, kind)
        yield self._statement("add_pause", queue, kind, until, state.now, actor, reason)
        return Pause(queue, kind, moment(until), moment(state.now), actor, reason)

    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        state = yield from self._begin_write()
        rows = yield self._statement("delete_pause", queue, kind)
        return any(until is None or until > state.now for (until,) in rows)

    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._read_outside("pauses", queue, self._now())
        return [
            Pause(queue, kind, moment(until), moment(since), actor, reason)
            for queue, kind, until, since, actor, reason in rows
        ]
