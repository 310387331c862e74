"""diagnose: problems of the server and the schema, as far as an ordinary user may see them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from laneway.engines.findings import (
    WORKERS_LOOKED,
    WaitingQueue,
    lately,
    limits_findings,
    schema_finding,
    service_findings,
    upkeep_finding,
)
from laneway.engines.times import SECOND, moment
from laneway.inspection import Finding
from laneway.plan import Plan, Row

from .base import MysqlSql, text
from .inspect import MysqlInspect
from .operate.control import MysqlWorkers
from .operate.looks import MysqlLooks, name_bytes
from .operate.minutes import MysqlMinutes
from .schema import MysqlRepair
from .shared_limits import MysqlSharedLimits

_NEVER = 2**63 - 1
_QUEUES = 200


class MysqlService:
    """For diagnose: which queues have work that could start, and who works."""

    def __init__(self, sql: MysqlSql, looks: MysqlLooks) -> None:
        self._sql = sql
        self._looks = looks

    def waiting_work(self) -> Plan[list[WaitingQueue]]:
        rows = yield self._sql.statement("last_claims")
        claims = {name_bytes(queue): moment(at) for queue, at in rows}
        names = (yield from self._looks.queue_names())[:_QUEUES]
        now = self._sql.now()
        waiting: Sequence[Row] = ()
        if names:
            waiting = yield self._sql.union("waiting_queue", [(name, now) for name in names])
        found = []
        for queue, since, at in waiting:
            name = name_bytes(queue)
            due = None if int(since) == _NEVER else moment(since)
            rows = [*(yield self._sql.statement("kinds_of_wakes", name, int(at)))]
            rows += yield self._sql.statement("kinds_of_lanes", name, int(at))
            kinds = sorted({text(row[0]) or "" for row in rows})
            found.append(WaitingQueue(text(name) or "", due, claims.get(name), kinds))
        return found


_UPKEEP_LATE = 30 * SECOND
_STATEMENTS = "binlog_format is STATEMENT: the server rejects all writes at READ COMMITTED."


class MysqlServerSettings(NamedTuple):
    """The columns of diagnose_server."""

    version: bytes | str
    flush: int
    sync_binlog: int
    log_bin: int
    doublewrite: int | bytes | str
    read_only: int
    packet: int
    binlog_format: bytes | str


class MysqlDiagnose:
    def __init__(
        self,
        sql: MysqlSql,
        schema: MysqlRepair,
        inspection: MysqlInspect,
        workers: MysqlWorkers,
        service: MysqlService,
        minutes: MysqlMinutes,
        limits: MysqlSharedLimits,
    ) -> None:
        self._sql = sql
        self._schema = schema
        self._inspection = inspection
        self._workers = workers
        self._service = service
        self._minutes = minutes
        self._limits = limits

    def diagnose(self, age: float = 0.0) -> Plan[list[Finding]]:
        rows = yield self._sql.statement("diagnose_server")
        findings = list(_server_findings(MysqlServerSettings(*rows[0])))
        version = yield from self._schema.applied()
        findings.append(schema_finding(version, self._schema.newest_version, self._sql.schema))
        if version == self._schema.newest_version:
            findings.append((yield from self._schema.drift(age)))
            if findings[-1].level == "fail":  # the other questions need what is missing
                return findings
        if version is not None:
            rows = yield self._sql.statement("diagnose_leases", _UPKEEP_LATE, self._sql.now())
            expired, since = rows[0]
            findings.append(upkeep_finding(expired, since and moment(since)))
        if version == self._schema.newest_version:
            findings += yield from self._diagnose_service()
        return findings

    def _diagnose_service(self) -> Plan[list[Finding]]:
        now = yield from self._inspection.clock()
        workers = yield from self._workers.workers(WORKERS_LOOKED)
        waiting = yield from self._service.waiting_work()
        minutes = yield from self._minutes.minutes(lately(now))
        limits = limits_findings((yield from self._limits.shared_limits()), now)
        return [*service_findings(now, workers, waiting, minutes), *limits]


def _server_findings(server: MysqlServerSettings) -> Iterator[Finding]:
    name = text(server.version)
    if int(server.read_only):
        says = f"{name} is read-only: it accepts no writes."
        yield Finding("server", "fail", says, "Point the URL at the primary.")
    else:
        yield Finding("server", "ok", f"{name}, writable.")
    yield _commits(int(server.flush))
    if int(server.log_bin) and int(server.sync_binlog) != 1:
        value = server.sync_binlog
        says = f"sync_binlog is {value}: after a crash, replicas can miss acknowledged changes."
        yield Finding("sync_binlog", "warn", says, "Set sync_binlog = 1.")
    else:
        yield Finding("sync_binlog", "ok", "The binary log holds every acknowledged change.")
    if int(server.log_bin) and text(server.binlog_format) == "STATEMENT":
        yield Finding("binlog_format", "fail", _STATEMENTS, "Set binlog_format to MIXED or ROW.")
    yield _doublewrite(server.doublewrite)
    megabytes = int(server.packet) // 1024 // 1024
    says = f"max_allowed_packet is {megabytes} MiB: a message must fit, and a byte may take two."
    yield Finding("max_allowed_packet", "ok", says)


def _commits(flush: int) -> Finding:
    check = "innodb_flush_log_at_trx_commit"
    if flush == 1:
        return Finding(check, "ok", f"{check} is 1: acknowledged work is on disk.")
    says = f"{check} is {flush}: a crash can lose the last second of acknowledged work."
    return Finding(check, "warn", says, f"Set {check} = 1, unless that loss is acceptable.")


def _doublewrite(value: int | bytes | str) -> Finding:
    on = (text(value) if isinstance(value, bytes) else str(value)) in ("1", "ON")
    if on:
        return Finding("innodb_doublewrite", "ok", "innodb_doublewrite is on.")
    says = "innodb_doublewrite is off: a power failure can leave torn pages."
    fix = "Set innodb_doublewrite = ON, unless the file system writes whole pages atomically."
    return Finding("innodb_doublewrite", "fail", says, fix)
