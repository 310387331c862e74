"""diagnose: durability, size of the file, schema version, and whether upkeep runs."""

import json
from datetime import timedelta

from laneway.engines.findings import (
    WORKERS_LOOKED,
    WaitingQueue,
    lately,
    limits_findings,
    schema_finding,
    service_findings,
    upkeep_finding,
)
from laneway.engines.times import micros, moment
from laneway.inspection import Finding
from laneway.plan import Plan

from .base import SqliteSql
from .inspect import SqliteInspect
from .operate.control import SqliteWorkers
from .operate.minutes import SqliteMinutes
from .schema import SqliteRepair
from .shared_limits import SqliteSharedLimits

_UPKEEP_LATE = micros(timedelta(seconds=30))
_NORMAL = 1
_MB = 1_000_000
_MUCH = 100 * _MB


class SqliteDiagnose:
    def __init__(
        self,
        sql: SqliteSql,
        schema: SqliteRepair,
        inspection: SqliteInspect,
        workers: SqliteWorkers,
        minutes: SqliteMinutes,
        limits: SqliteSharedLimits,
    ) -> None:
        self._sql = sql
        self._schema = schema
        self._inspection = inspection
        self._workers = workers
        self._minutes = minutes
        self._limits = limits

    def diagnose(self, age: float = 0.0) -> Plan[list[Finding]]:
        rows = yield self._sql.read_outside("diagnose_file")
        version, journal, synchronous, *pages = rows[0]
        findings = [_durability(journal, synchronous), _size(version, *pages)]
        number = yield from self._schema.applied(self._sql.read_outside)
        findings.append(schema_finding(number, self._schema.newest_version, self._sql.schema))
        if number == self._schema.newest_version:
            findings.append((yield from self._schema.drift(age)))
            if findings[-1].level == "fail":  # the other questions need what is missing
                return findings
        if number is not None:
            rows = yield self._sql.read_outside("diagnose_leases", self._sql.now() - _UPKEEP_LATE)
            expired, since = rows[0]
            findings.append(upkeep_finding(expired, moment(since)))
        if number == self._schema.newest_version:
            findings += yield from self._diagnose_service()
        return findings

    def _diagnose_service(self) -> Plan[list[Finding]]:
        now = yield from self._inspection.clock()
        workers = yield from self._workers.workers(WORKERS_LOOKED)
        waiting = yield from self._waiting_work()
        minutes = yield from self._minutes.minutes(lately(now))
        limits = limits_findings((yield from self._limits.shared_limits()), now)
        return [*service_findings(now, workers, waiting, minutes), *limits]

    def _waiting_work(self) -> Plan[list[WaitingQueue]]:
        rows = yield self._sql.read_outside("waiting_work", self._sql.now())
        return [
            WaitingQueue(queue, moment(since), moment(claimed), json.loads(kinds))
            for queue, since, claimed, kinds in rows
        ]


def _durability(journal: str, synchronous: int) -> Finding:
    if journal == "memory":
        says = "The database is in memory: it is lost when the client closes."
        return Finding("durability", "warn", says, "Use a file for anything but tests.")
    if journal != "wal":
        says = f"The file is in journal mode {journal!r}: readers and writers block each other."
        return Finding("durability", "fail", says, "Set PRAGMA journal_mode = WAL.")
    if synchronous <= _NORMAL:
        says = "synchronous is below FULL: a power cut may lose the last transactions."
        return Finding("durability", "warn", says, "Remove ?synchronous=normal from the URL.")
    return Finding(
        "durability", "ok", "Commits are written to disk before they are acknowledged (WAL, FULL)."
    )


def _size(version: str, page: int, pages: int, free: int) -> Finding:
    says = (
        f"SQLite {version}, {page * pages / _MB:,.1f} MB, of which {page * free / _MB:,.1f} empty."
    )
    if page * free > _MUCH and 2 * free > pages:
        mend = "Run VACUUM to shrink the file; nobody else can use it meanwhile."
        return Finding("file", "warn", says, mend)
    return Finding("file", "ok", says)
