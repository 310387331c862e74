"""What a crash of this server can lose: its settings, judged."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from penstock.insight import Finding

_STANDBY_WAITS = ("remote_apply", "on", "remote_write")


class Server(NamedTuple):
    """The columns of examine_server.sql."""

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


def judged(server: Server) -> Iterator[Finding]:
    yield _role(server)
    yield _commits(server)
    yield _disk("fsync", server.fsync, "a crash of the machine can destroy the database")
    yield _disk("full_page_writes", server.full_page_writes, "a power cut can leave torn pages")
    yield _replication(server)


def _role(server: Server) -> Finding:
    if server.standby:
        says = f"PostgreSQL {server.version}, a standby: it takes no writes."
        return Finding("server", "fail", says, "Point the URL to the primary.")
    return Finding("server", "ok", f"PostgreSQL {server.version}, a primary.")


def _commits(server: Server) -> Finding:
    value = server.synchronous_commit
    if value == "off":
        return Finding(
            "synchronous_commit",
            "warn",
            "synchronous_commit is off: a crash of the server can lose the last moments of "
            "acknowledged publishes and completions.",
            "Set synchronous_commit = on for this role or database, or accept it knowingly.",
        )
    where = "on disk here"
    if server.wanted_standbys and value in _STANDBY_WAITS:
        where += " and on a synchronous standby"
    says = f"synchronous_commit is {value}: what is acknowledged is {where}."
    return Finding("synchronous_commit", "ok", says)


def _disk(name: str, value: str, danger: str) -> Finding:
    if value == "on":
        return Finding(name, "ok", f"{name} is on.")
    says = f"{name} is {value}: {danger}."
    return Finding(name, "fail", says, f"Set {name} = on in postgresql.conf and reload.")


def _replication(server: Server) -> Finding:
    if server.wanted_standbys and not server.synchronous:
        says = "A synchronous standby is asked for and none is connected: commits wait for it."
        mend = "Bring the standby back, or change synchronous_standby_names."
        return Finding("replication", "fail", says, mend)
    if server.idle_slots:
        says = f"Replication slots nobody reads: {server.idle_slots}. They keep WAL on disk."
        mend = "Start their consumers, or drop them with pg_drop_replication_slot()."
        return Finding("replication", "warn", says, mend)
    if not server.standbys:
        says = "No standby is connected: what this server's disk loses is lost, but for backups."
        return Finding("replication", "ok", says)
    says = f"Standbys connected: {server.standbys}, of which synchronous: {server.synchronous}."
    return Finding("replication", "ok", says)
