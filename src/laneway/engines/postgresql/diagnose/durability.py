"""Findings on what a crash of this server can lose, from its settings."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from laneway.inspection import Finding

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
