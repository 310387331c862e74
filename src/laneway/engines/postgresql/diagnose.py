"""Diagnose problems from the server's own statistics. Needs no special rights."""

import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
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
from laneway.inspection import Finding, Level
from laneway.plan import Plan

from .base import PostgresqlSql
from .inspect import PostgresqlInspect
from .operate.control import PostgresqlWorkers
from .operate.looks import PostgresqlLooks
from .schema import PostgresqlRepair
from .shared_limits import PostgresqlSharedLimits

# Findings on what a crash of this server can lose, from its settings.

_STANDBY_WAITS = ("remote_apply", "on", "remote_write")


class PostgresqlServer(NamedTuple):
    """The columns of the statement diagnose_server."""

    version: str
    standby: bool
    synchronous_commit: str
    fsync: str
    full_page_writes: str
    wanted_standbys: str
    standbys: int
    synchronous: int
    idle_slots: int
    autovacuum: bool
    notifications: float
    connections: int
    max_connections: int
    prepared: int
    oldest_prepared: datetime | None
    prepared_name: str | None
    now: datetime


def durability_findings(server: PostgresqlServer) -> Iterator[Finding]:
    yield _role(server)
    yield _commits(server)
    yield _disk("fsync", server.fsync, "a crash of the machine can destroy the database")
    yield _disk("full_page_writes", server.full_page_writes, "a power cut can leave torn pages")
    yield _replication(server)


def _role(server: PostgresqlServer) -> Finding:
    if server.standby:
        says = f"PostgreSQL {server.version}, a standby: it accepts no writes."
        return Finding("server", "fail", says, "Point the URL to the primary.")
    return Finding("server", "ok", f"PostgreSQL {server.version}, a primary.")


def _commits(server: PostgresqlServer) -> Finding:
    value = server.synchronous_commit
    if value == "off":
        return Finding(
            "synchronous_commit",
            "warn",
            "synchronous_commit is off: a crash of the server can lose the last moments of "
            "acknowledged publishes and completions.",
            "Set synchronous_commit = on for this role or database, or accept the risk.",
        )
    where = "on disk here"
    if server.wanted_standbys and value in _STANDBY_WAITS:
        where += " and on a synchronous standby"
    says = f"synchronous_commit is {value}: acknowledged writes are {where}."
    return Finding("synchronous_commit", "ok", says)


def _disk(name: str, value: str, danger: str) -> Finding:
    if value == "on":
        return Finding(name, "ok", f"{name} is on.")
    says = f"{name} is {value}: {danger}."
    return Finding(name, "fail", says, f"Set {name} = on in postgresql.conf and reload.")


def _replication(server: PostgresqlServer) -> Finding:
    if server.wanted_standbys and not server.synchronous:
        says = "A synchronous standby is required and none is connected: commits wait for it."
        fix = "Bring the standby back, or change synchronous_standby_names."
        return Finding("replication", "fail", says, fix)
    if server.idle_slots:
        says = f"Inactive replication slots: {server.idle_slots}. They keep WAL on disk."
        fix = "Start their consumers, or drop them with pg_drop_replication_slot()."
        return Finding("replication", "warn", says, fix)
    if not server.standbys:
        says = "No standby is connected: if this server loses its disk, only backups remain."
        return Finding("replication", "ok", says)
    says = f"Standbys connected: {server.standbys}, of which synchronous: {server.synchronous}."
    return Finding("replication", "ok", says)


# Findings on what slows a server down over time: vacuum, old snapshots, open transactions.

_OLD_SNAPSHOT = timedelta(minutes=10)
_OLD_PREPARED = timedelta(minutes=5)
_MANY_DEAD = 100_000
_FULL = 0.9


class SnapshotHolder(NamedTuple):
    """The columns of the statement diagnose_snapshot."""

    who: str
    started: datetime | None
    transactions: int


class TableStatistics(NamedTuple):
    """The columns of the statement diagnose_tables."""

    name: str
    live: int
    dead: int
    vacuum_off: bool
    vacuumed: datetime | None


def server_findings(server: PostgresqlServer) -> Iterator[Finding]:
    yield _prepared(server)
    yield _notifications(server.notifications)
    yield _connections(server)
    yield _autovacuum(server.autovacuum)


def snapshot_finding(oldest: SnapshotHolder | None, now: datetime) -> Finding:
    if oldest is None:
        return Finding("oldest snapshot", "ok", "No session holds an old snapshot.")
    age = timedelta(0) if oldest.started is None else now - oldest.started
    since = (
        "" if oldest.started is None else f" for {timedelta(seconds=age.seconds, days=age.days)}"
    )
    says = f"Held{since} by {oldest.who}, {oldest.transactions} transactions ago."
    if age < _OLD_SNAPSHOT:
        return Finding("oldest snapshot", "ok", says)
    fix = "Vacuum cannot remove dead rows meanwhile: end that session, or let it finish."
    return Finding("oldest snapshot", "warn", says, fix)


def table_findings(tables: Iterable[TableStatistics]) -> Iterator[Finding]:
    tables = list(tables)
    off = [table.name for table in tables if table.vacuum_off]
    if off:
        says = f"Autovacuum is turned off for {', '.join(off)}."
        fix = "alter table … reset (autovacuum_enabled)"
        yield Finding("autovacuum of our tables", "fail", says, fix)
    else:
        yield Finding("autovacuum of our tables", "ok", "It is on for all of them.")
    yield _dead_rows(tables)


def _dead_rows(tables: list[TableStatistics]) -> Finding:
    worst = [table for table in tables if table.dead > max(_MANY_DEAD, 2 * table.live)]
    if not worst:
        return Finding("dead rows", "ok", f"{sum(table.dead for table in tables):,} in all tables.")
    named = ", ".join(f"{table.name} {table.dead:,}" for table in worst)
    fix = "Look for an old snapshot first; if there is none, vacuum these tables."
    return Finding("dead rows", "warn", f"More dead rows than vacuum should leave: {named}.", fix)


def _prepared(server: PostgresqlServer) -> Finding:
    if not server.prepared or server.oldest_prepared is None:
        return Finding("prepared transactions", "ok", "None is open.")
    old = server.now - server.oldest_prepared > _OLD_PREPARED
    says = f"{server.prepared} open, the oldest {server.prepared_name!r} since " + (
        f"{server.oldest_prepared:%Y-%m-%d %H:%M:%S %Z}."
    )
    fix = "COMMIT PREPARED or ROLLBACK PREPARED it: until then it holds locks and a snapshot."
    return Finding("prepared transactions", *(("warn", says, fix) if old else ("ok", says, None)))


def _notifications(usage: float) -> Finding:
    says = f"The notification queue is {usage:.0%} full."
    if usage < 0.5:
        return Finding("notification queue", "ok", says)
    level: Level = "fail" if usage >= _FULL else "warn"
    fix = "A listening session keeps a transaction open: end it (see oldest snapshot)."
    return Finding("notification queue", level, says, fix)


def _connections(server: PostgresqlServer) -> Finding:
    says = f"{server.connections} of {server.max_connections} connections are in use."
    if server.connections < _FULL * server.max_connections:
        return Finding("connections", "ok", says)
    fix = "Use smaller pools or a pooler, or raise max_connections."
    return Finding("connections", "warn", says, fix)


def _autovacuum(on: bool) -> Finding:
    if on:
        return Finding("autovacuum", "ok", "Autovacuum is on.")
    fix = "Set autovacuum = on and track_counts = on in postgresql.conf and reload."
    return Finding("autovacuum", "fail", "Autovacuum is off: tables grow without limit.", fix)


class SilentReader(NamedTuple):
    """The columns of the statement diagnose_readers: streams of the history that have lost rows, or
    of which nothing was seen for more than half of the time for which they are waited for."""

    name: str
    seen_at: datetime
    waited_until: datetime
    missed_at: datetime | None


def streams_finding(readers: list[SilentReader]) -> Finding:
    if not readers:
        return Finding("history streams", "ok", "No registered stream is silent or has lost rows.")
    lost = [f"{r.name} ({r.missed_at:%Y-%m-%d %H:%M %Z})" for r in readers if r.missed_at]
    if lost:
        says = f"History was deleted that these streams had not read: {', '.join(lost)}."
        fix = (
            "Read it from the lake; then laneway lake streams --forget STREAM, and start it again."
        )
        return Finding("history streams", "fail", says, fix)
    silent = ", ".join(
        f"{r.name} (last seen {r.seen_at:%Y-%m-%d %H:%M %Z}, kept until {r.waited_until:%Y-%m-%d})"
        for r in readers
    )
    says = f"The history keeps what silent streams have not read: {silent}."
    fix = "Start them, or laneway lake streams --forget STREAM. After that time it is deleted."
    return Finding("history streams", "warn", says, fix)


_UPKEEP_LATE = timedelta(seconds=30)


class PostgresqlDiagnose:
    def __init__(
        self,
        sql: PostgresqlSql,
        schema: PostgresqlRepair,
        inspection: PostgresqlInspect,
        workers: PostgresqlWorkers,
        looks: PostgresqlLooks,
        limits: PostgresqlSharedLimits,
    ) -> None:
        self._sql = sql
        self._schema = schema
        self._inspection = inspection
        self._workers = workers
        self._looks = looks
        self._limits = limits

    _fine: tuple[float, list[Finding]] = (float("-inf"), [])

    def diagnose(self, age: float = 0.0) -> Plan[list[Finding]]:
        asked, findings = self._fine
        now = time.monotonic()
        if now - asked >= age:
            findings = yield from self._diagnose_server()
            troubled = any(finding.level != "ok" for finding in findings)
            self._fine = (float("-inf") if troubled else now, findings)
        findings = list(findings)
        version = yield from self._schema.applied()
        findings.append(schema_finding(version, self._schema.newest_version, self._sql.schema))
        if version == self._schema.newest_version:
            findings.append((yield from self._schema.drift(age)))
            if findings[-1].level == "fail":  # the other questions need what is missing
                return findings
        if version is not None:
            rows = yield self._sql.statement_now("diagnose_leases", _UPKEEP_LATE)
            findings.append(upkeep_finding(*rows[0]))
        if version == self._schema.newest_version:
            findings += yield from self._diagnose_service()
            rows = yield self._sql.statement_now("diagnose_readers")
            findings.append(streams_finding([SilentReader(*row) for row in rows]))
        return findings

    def _diagnose_server(self) -> Plan[list[Finding]]:
        rows = yield self._sql.statement("diagnose_server")
        server = PostgresqlServer(*rows[0])
        rows = yield self._sql.statement("diagnose_snapshot")
        oldest = SnapshotHolder(*rows[0]) if rows else None
        rows = yield self._sql.statement("diagnose_path")
        path = _search_path_finding([str(row[0]) for row in rows])
        rows = yield self._sql.statement("diagnose_tables", self._sql.schema)
        tables = table_findings(TableStatistics(*row) for row in rows) if rows else ()
        found = [*durability_findings(server), *server_findings(server)]
        return [*found, snapshot_finding(oldest, server.now), path, *tables]

    def _diagnose_service(self) -> Plan[list[Finding]]:
        now = yield from self._inspection.clock()
        workers = yield from self._workers.workers(WORKERS_LOOKED)
        waiting = yield from self._waiting_work()
        minutes = yield from self._looks.minutes(lately(now))
        limits = limits_findings((yield from self._limits.shared_limits()), now)
        return [*service_findings(now, workers, waiting, minutes), *limits]

    def _waiting_work(self) -> Plan[list[WaitingQueue]]:
        rows = yield self._sql.statement_now("waiting_work")
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
