"""The audit: what operators did."""

import json

from laneway.engines.sqlite.base import SqliteBase
from laneway.engines.times import moment
from laneway.operations import AuditEntry, AuditNote
from laneway.plan import Plan


class SqliteAudit(SqliteBase):
    def add_audit(self, note: AuditNote) -> Plan[None]:
        target = json.dumps(note.target)
        words = (note.actor, note.source, note.action, target, note.affected)
        yield self._statement("add_audit", self._now(), *words)

    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._read_outside("audit", limit, before)
        return [
            AuditEntry(id, moment(at), actor, source, action, json.loads(target), affected)
            for id, at, actor, source, action, target, affected in rows
        ]
