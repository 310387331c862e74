"""What could go wrong, or has, as far as any user of the server may see."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.engines.judging import schema_judged, upkeep_judged
from penstock.insight import Finding
from penstock.plan import Plan

from .migrations import Migrations
from .names import text
from .times import SECOND, moment

_UPKEEP_LATE = 30 * SECOND
_STATEMENTS = "binlog_format is STATEMENT: the server refuses all writes at READ COMMITTED."


class Server(NamedTuple):
    """The columns of examine_server.sql."""

    version: bytes | str
    flush: int
    sync_binlog: int
    log_bin: int
    doublewrite: int | bytes | str
    read_only: int
    packet: int
    binlog_format: bytes | str


class Examining(Migrations):
    def examine(self) -> Plan[list[Finding]]:
        rows = yield self._say("examine_server")
        findings = list(_judged(Server(*rows[0])))
        version = yield from self._applied()
        findings.append(schema_judged(version, self.newest_version, self.schema))
        if version is not None:
            rows = yield self._say("examine_leases", _UPKEEP_LATE, self._now())
            expired, since = rows[0]
            findings.append(upkeep_judged(expired, since and moment(since)))
        return findings


def _judged(server: Server) -> Iterator[Finding]:
    name = text(server.version)
    if int(server.read_only):
        says = f"{name}, read only: it takes no writes."
        yield Finding("server", "fail", says, "Point the URL to the primary.")
    else:
        yield Finding("server", "ok", f"{name}, a primary.")
    yield _commits(int(server.flush))
    if int(server.log_bin) and int(server.sync_binlog) != 1:
        says = f"sync_binlog is {server.sync_binlog}: a crash can lose what replicas should get."
        yield Finding("sync_binlog", "warn", says, "Set sync_binlog = 1.")
    else:
        yield Finding("sync_binlog", "ok", "No acknowledged change is missing in the binary log.")
    if int(server.log_bin) and text(server.binlog_format) == "STATEMENT":
        yield Finding("binlog_format", "fail", _STATEMENTS, "Set binlog_format to MIXED or ROW.")
    yield _doublewrite(server.doublewrite)
    megabytes = int(server.packet) // 1024 // 1024
    says = f"max_allowed_packet is {megabytes} MiB: a message must fit, some bytes count twice."
    yield Finding("max_allowed_packet", "ok", says)


def _commits(flush: int) -> Finding:
    check = "innodb_flush_log_at_trx_commit"
    if flush == 1:
        return Finding(check, "ok", f"{check} is 1: what is acknowledged is on disk here.")
    says = f"{check} is {flush}: a crash can lose the last second of acknowledged work."
    return Finding(check, "warn", says, f"Set {check} = 1, or accept it knowingly.")


def _doublewrite(value: int | bytes | str) -> Finding:
    on = (text(value) if isinstance(value, bytes) else str(value)) in ("1", "ON")
    if on:
        return Finding("innodb_doublewrite", "ok", "innodb_doublewrite is on.")
    says = "innodb_doublewrite is off: a power cut can leave torn pages."
    mend = "Set innodb_doublewrite = ON, unless the file system writes pages whole."
    return Finding("innodb_doublewrite", "fail", says, mend)
