"""Pauses of whole queues, and of kinds of messages in them."""

from datetime import timedelta

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.operations import Pause
from laneway.plan import Plan


class PostgresqlPauses(PostgresqlBase):
    def pause_queue(
        self, queue: str, kind: str | None, length: timedelta | None, actor: str, reason: str
    ) -> Plan[Pause]:
        rows = yield self._statement_now("pause_queue", queue, kind, length, actor, reason)
        return Pause(*rows[0])

    def resume_queue(self, queue: str, kind: str | None) -> Plan[bool]:
        rows = yield self._statement_now("resume_queue", queue, kind)
        return bool(rows[0][0])

    def pauses(self, queue: str | None) -> Plan[list[Pause]]:
        rows = yield self._statement_now("pauses", queue)
        return [Pause(*row) for row in rows]
