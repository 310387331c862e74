"""Findings on what slows a server down over time: vacuum, old snapshots, open transactions."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from laneway.inspection import Finding, Level

from .durability import PostgresqlServer

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
