"""What slows a server down over time: vacuum, old snapshots, forgotten transactions, judged."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from penstock.insight import Finding, Level

from .durability import Server

_OLD_SNAPSHOT = timedelta(minutes=10)
_OLD_PREPARED = timedelta(minutes=5)
_MANY_DEAD = 100_000
_FULL = 0.9


class Holder(NamedTuple):
    """The columns of examine_snapshot.sql."""

    who: str
    started: datetime | None
    transactions: int


class Table(NamedTuple):
    """The columns of examine_tables.sql."""

    name: str
    live: int
    dead: int
    vacuum_off: bool
    vacuumed: datetime | None


def server_judged(server: Server) -> Iterator[Finding]:
    yield _prepared(server)
    yield _notifications(server.notifications)
    yield _connections(server)
    yield _autovacuum(server.autovacuum)


def snapshot_judged(oldest: Holder | None, now: datetime) -> Finding:
    if oldest is None:
        return Finding("oldest snapshot", "ok", "Nobody holds an old snapshot.")
    age = timedelta(0) if oldest.started is None else now - oldest.started
    since = (
        "" if oldest.started is None else f" for {timedelta(seconds=age.seconds, days=age.days)}"
    )
    says = f"Held{since} by {oldest.who}, {oldest.transactions} transactions ago."
    if age < _OLD_SNAPSHOT:
        return Finding("oldest snapshot", "ok", says)
    mend = "Claims stay fast, but dead rows cannot be removed: end it, or let it finish."
    return Finding("oldest snapshot", "warn", says, mend)


def tables_judged(tables: Iterable[Table]) -> Iterator[Finding]:
    tables = list(tables)
    off = [table.name for table in tables if table.vacuum_off]
    if off:
        says = f"Autovacuum is turned off for {', '.join(off)}."
        mend = "alter table … reset (autovacuum_enabled)"
        yield Finding("autovacuum of our tables", "fail", says, mend)
    else:
        yield Finding("autovacuum of our tables", "ok", "Nobody turned it off.")
    yield _dead_rows(tables)


def _dead_rows(tables: list[Table]) -> Finding:
    worst = [table for table in tables if table.dead > max(_MANY_DEAD, 2 * table.live)]
    if not worst:
        return Finding("dead rows", "ok", f"{sum(table.dead for table in tables):,} in all tables.")
    named = ", ".join(f"{table.name} {table.dead:,}" for table in worst)
    mend = "Look for an old snapshot first; if there is none, vacuum these tables."
    return Finding("dead rows", "warn", f"More dead rows than vacuum should leave: {named}.", mend)


def _prepared(server: Server) -> Finding:
    if not server.prepared or server.oldest_prepared is None:
        return Finding("prepared transactions", "ok", "None is open.")
    old = server.now - server.oldest_prepared > _OLD_PREPARED
    says = f"{server.prepared} open, the oldest {server.prepared_name!r} since " + (
        f"{server.oldest_prepared:%Y-%m-%d %H:%M:%S %Z}."
    )
    mend = "COMMIT PREPARED or ROLLBACK PREPARED it: it holds locks and a snapshot for ever."
    return Finding("prepared transactions", *(("warn", says, mend) if old else ("ok", says, None)))


def _notifications(usage: float) -> Finding:
    says = f"The notification queue is {usage:.0%} full."
    if usage < 0.5:
        return Finding("notification queue", "ok", says)
    level: Level = "fail" if usage >= _FULL else "warn"
    mend = "A session that listens stays in one transaction: end it (see oldest snapshot)."
    return Finding("notification queue", level, says, mend)


def _connections(server: Server) -> Finding:
    says = f"{server.connections} of {server.max_connections} connections are in use."
    if server.connections < _FULL * server.max_connections:
        return Finding("connections", "ok", says)
    mend = "Use smaller pools or a pooler, or raise max_connections."
    return Finding("connections", "warn", says, mend)


def _autovacuum(on: bool) -> Finding:
    if on:
        return Finding("autovacuum", "ok", "Autovacuum is on.")
    mend = "Set autovacuum = on and track_counts = on in postgresql.conf and reload."
    return Finding("autovacuum", "fail", "Autovacuum is off: tables grow without end.", mend)
