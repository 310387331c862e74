"""Diagnose problems from the server's own statistics. Needs no special rights."""

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from laneway.engines.findings import schema_finding, upkeep_finding
from laneway.engines.postgresql.repair import PostgresqlRepair
from laneway.engines.service_findings import (
    WORKERS_LOOKED,
    WaitingQueue,
    lately,
    service_findings,
)
from laneway.inspection import Finding
from laneway.plan import Plan

from .durability import PostgresqlServer, durability_findings
from .server_health import (
    SnapshotHolder,
    TableStatistics,
    server_findings,
    snapshot_finding,
    table_findings,
)

if TYPE_CHECKING:
    from laneway.contract import Engine

_UPKEEP_LATE = timedelta(seconds=30)


class PostgresqlDiagnose(PostgresqlRepair):
    def diagnose(self) -> Plan[list[Finding]]:
        rows = yield self._statement("diagnose_server")
        server = PostgresqlServer(*rows[0])
        findings = [*durability_findings(server), *server_findings(server)]
        rows = yield self._statement("diagnose_snapshot")
        oldest = SnapshotHolder(*rows[0]) if rows else None
        findings.append(snapshot_finding(oldest, server.now))
        rows = yield self._statement("diagnose_path")
        findings.append(_search_path_finding([str(row[0]) for row in rows]))
        version = yield from self._applied()
        findings.append(schema_finding(version, self.newest_version, self.schema))
        if version == self.newest_version:
            findings.append((yield from self.drift()))
            if findings[-1].level == "fail":  # the other questions need what is missing
                return findings
        if version is not None:
            findings += yield from self._diagnose_schema()
        if version == self.newest_version:
            findings += yield from self._diagnose_service()
        return findings

    def _diagnose_schema(self) -> Plan[list[Finding]]:
        rows = yield self._statement("diagnose_tables", self.schema)
        tables = [TableStatistics(*row) for row in rows]
        rows = yield self._statement_now("diagnose_leases", _UPKEEP_LATE)
        return [*table_findings(tables), upkeep_finding(*rows[0])]

    def _diagnose_service(self) -> Plan[list[Finding]]:
        engine = cast("Engine", self)
        now = yield from engine.clock()
        workers = yield from engine.workers(WORKERS_LOOKED)
        waiting = yield from self._waiting_work()
        minutes = yield from engine.minutes(lately(now))
        started = {minute.queue or "" for minute in minutes if minute.started}
        return service_findings(now, workers, waiting, started)

    def _waiting_work(self) -> Plan[list[WaitingQueue]]:
        rows = yield self._statement_now("waiting_work")
        return [WaitingQueue(*row) for row in rows]


def _search_path_finding(open_to_all: list[str]) -> Finding:
    """Objects that others create there could be found instead of the intended ones."""
    if not open_to_all:
        return Finding(
            "search path", "ok", "Only owners can create objects in this session's search path."
        )
    names = ", ".join(open_to_all)
    says = f"Anybody can create objects in {names}, which is in this session's search path."
    fix = f"revoke create on schema {names} from public;"
    return Finding("search path", "warn", says, fix)
