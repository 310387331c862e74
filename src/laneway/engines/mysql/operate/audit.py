"""The audit: what operators did."""

import json
from typing import cast

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.times import moment
from laneway.operations import AuditEntry, AuditNote, Source
from laneway.plan import Plan, Row


class MysqlAudit(MysqlBase):
    @repeatable
    def add_audit(self, note: AuditNote) -> Plan[None]:
        words = map(data, (note.actor, note.source, note.action, json.dumps(note.target)))
        yield self._statement("add_audit", *words, note.affected, self._now())

    @repeatable
    def audit(self, limit: int, before: int | None) -> Plan[list[AuditEntry]]:
        rows = yield self._statement("audit", limit, before)
        return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
    id, at, actor, source, action, target, affected = row
    words = text(actor) or "", cast(Source, text(source)), text(action) or ""
    return AuditEntry(id, moment(at), *words, json.loads(target), affected)
