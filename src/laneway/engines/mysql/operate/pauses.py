"""Pauses of whole queues, and of kinds of messages in them."""

from datetime import timedelta

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.times import micros, moment
from laneway.operations import Pause
from laneway.plan import Plan, Row


class MysqlPauses(MysqlBase):
    @repeatable
    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        """When it is committed, nothing of it starts: claims share the lock that this takes."""
        yield self._statement("count_pause")
        yield from self._end_pause(queue, kind)
        rows = yield self._statement("clock", self._now())
        now = int(rows[0][0])
        until = None if length is None else now + micros(length)
        names = data(queue), data(kind)
        yield self._statement("add_pause", *names, until, now, data(actor), data(reason))
        return Pause(queue, kind, moment(until), moment(now), actor, reason)

    @repeatable
    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        ended = yield from self._end_pause(queue, kind)
        rows = yield self._statement("clock", self._now())
        return any(until is None or int(until) > int(rows[0][0]) for until in ended)

    @repeatable
    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._statement("pauses", data(queue), self._now())
        return [_pause(row) for row in rows]

    def _end_pause(self, queue: str, kind: str | None) -> Plan[list[int | None]]:
        """Returns until when they would have held."""
        rows = yield self._statement("lock_pause", data(queue), data(kind))
        if rows:
            yield self._statement("delete_pauses", [int(row[0]) for row in rows])
        return [row[1] for row in rows]


def _pause(row: Row) -> Pause:
    queue, kind, until, since, actor, reason = row
    words = text(actor) or "", text(reason) or ""
    return Pause(text(queue) or "", text(kind), moment(until), moment(since), *words)
