"""What could go wrong, or has: read from the server's own statistics. Needs no special rights."""

from datetime import timedelta

from penstock.insight import Finding
from penstock.plan import Plan

from . import durability, housekeeping
from .migrations import Migrations, migrations

_UPKEEP_LATE = timedelta(seconds=30)


class Examining(Migrations):
    def examine(self) -> Plan[list[Finding]]:
        rows = yield self._say("examine_server")
        server = durability.Server(*rows[0])
        findings = [*durability.judged(server), *housekeeping.server_judged(server)]
        rows = yield self._say("examine_snapshot")
        oldest = housekeeping.Holder(*rows[0]) if rows else None
        findings.append(housekeeping.snapshot_judged(oldest, server.now))
        version = yield from self._applied()
        findings.append(_schema(version, self.schema))
        if version is not None:
            findings += yield from self._examine_schema()
        return findings

    def _examine_schema(self) -> Plan[list[Finding]]:
        rows = yield self._say("examine_tables", self.schema)
        tables = [housekeeping.Table(*row) for row in rows]
        rows = yield self._say_now("examine_leases", _UPKEEP_LATE)
        return [*housekeeping.tables_judged(tables), _upkeep(*rows[0])]


def _schema(version: int | None, schema: str) -> Finding:
    known = migrations()[-1].number
    if version is None:
        says = f"Penstock is not installed in schema {schema!r}."
        return Finding("schema", "fail", says, "Run penstock install.")
    says = f"Schema {schema!r} has version {version}"
    if version < known:
        return Finding("schema", "fail", f"{says}, this package needs {known}.", "penstock upgrade")
    if version > known:
        says = f"{says}, this package knows {known}; older clients keep working."
        return Finding("schema", "warn", says, "Upgrade the package when the deploy is through.")
    return Finding("schema", "ok", f"{says}, as this package.")


def _upkeep(expired: int, since: object) -> Finding:
    if not expired:
        return Finding("upkeep", "ok", "No lease that ran out waits to be taken back.")
    count = "1000 or more" if expired >= 1000 else str(expired)
    says = f"Leases that ran out and nobody took back: {count}, the oldest since {since}."
    mend = "Upkeep does not run: start a worker, or anything that claims or calls queue.upkeep()."
    return Finding("upkeep", "fail", says, mend)
