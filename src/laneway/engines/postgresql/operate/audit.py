"""The audit: what operators did."""

import json

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.operations import AuditEntry, AuditNote
from laneway.plan import Plan


class PostgresqlAudit(PostgresqlBase):
    def add_audit(self, note: AuditNote) -> Plan[None]:
        target = json.dumps(note.target)
        words = (note.actor, note.source, note.action, target, note.affected)
        yield self._statement_now("add_audit", *words)

    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._statement("audit", limit, before)
        return [
            AuditEntry(id, at, actor, source, action, json.loads(target), affected)
            for id, at, actor, source, action, target, affected in rows
        ]
