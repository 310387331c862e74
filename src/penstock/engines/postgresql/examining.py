"""What could go wrong, or has: read from the server's own statistics. Needs no special rights."""

from datetime import timedelta

from penstock.engines.judging import schema_judged, upkeep_judged
from penstock.insight import Finding
from penstock.plan import Plan

from . import durability, housekeeping
from .migrations import Migrations

_UPKEEP_LATE = timedelta(seconds=30)


class Examining(Migrations):
    def examine(self) -> Plan[list[Finding]]:
        rows = yield self._say("examine_server")
        server = durability.Server(*rows[0])
        findings = [*durability.judged(server), *housekeeping.server_judged(server)]
        rows = yield self._say("examine_snapshot")
        oldest = housekeeping.Holder(*rows[0]) if rows else None
        findings.append(housekeeping.snapshot_judged(oldest, server.now))
        rows = yield self._say("examine_path")
        findings.append(_path([str(row[0]) for row in rows]))
        version = yield from self._applied()
        findings.append(schema_judged(version, self.newest_version, self.schema))
        if version is not None:
            findings += yield from self._examine_schema()
        return findings

    def _examine_schema(self) -> Plan[list[Finding]]:
        rows = yield self._say("examine_tables", self.schema)
        tables = [housekeeping.Table(*row) for row in rows]
        rows = yield self._say_now("examine_leases", _UPKEEP_LATE)
        return [*housekeeping.tables_judged(tables), upkeep_judged(*rows[0])]


def _path(open_to_all: list[str]) -> Finding:
    """What somebody creates there may be found instead of what a statement means."""
    if not open_to_all:
        return Finding("search path", "ok", "Nobody else can create what this session would find.")
    names = ", ".join(open_to_all)
    says = f"Anybody may create things in {names}, where this session looks names up."
    mend = f"revoke create on schema {names} from public;"
    return Finding("search path", "warn", says, mend)
