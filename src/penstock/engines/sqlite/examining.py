"""What could go wrong, or has, as far as the file can say."""

from datetime import timedelta

from penstock.engines.judging import schema_judged, upkeep_judged
from penstock.insight import Finding
from penstock.plan import Plan

from .migrations import Migrations
from .times import micros, moment

_UPKEEP_LATE = micros(timedelta(seconds=30))
_NORMAL = 1
_MB = 1_000_000
_MUCH = 100 * _MB


class Examining(Migrations):
    def examine(self) -> Plan[list[Finding]]:
        rows = yield self._look("examine_place")
        version, journal, synchronous, *pages = rows[0]
        findings = [_durability(journal, synchronous), _size(version, *pages)]
        number = yield from self._applied(self._look)
        findings.append(schema_judged(number, self.newest_version, self.schema))
        if number is not None:
            rows = yield self._look("examine_leases", self._now() - _UPKEEP_LATE)
            expired, since = rows[0]
            findings.append(upkeep_judged(expired, moment(since)))
        return findings


def _durability(journal: str, synchronous: int) -> Finding:
    if journal == "memory":
        says = "The database is in memory: all is gone when the client closes."
        return Finding("durability", "warn", says, "Use a file for anything but tests.")
    if journal != "wal":
        says = f"The file is in journal mode {journal!r}: readers and writers stop each other."
        return Finding("durability", "fail", says, "Set PRAGMA journal_mode = WAL.")
    if synchronous <= _NORMAL:
        says = "synchronous is below FULL: a power cut may take the last transactions with it."
        return Finding("durability", "warn", says, "Leave ?synchronous=normal out of the URL.")
    return Finding("durability", "ok", "What is acknowledged was written to disk (WAL, FULL).")


def _size(version: str, page: int, pages: int, free: int) -> Finding:
    says = (
        f"SQLite {version}, {page * pages / _MB:,.1f} MB, of which {page * free / _MB:,.1f} empty."
    )
    if page * free > _MUCH and 2 * free > pages:
        mend = "VACUUM gives the space back; it needs the file for itself for a while."
        return Finding("file", "warn", says, mend)
    return Finding("file", "ok", says)
