"""Counts published messages, each once, by ranges of their ids.

MySQL does not tell an ordinary user which transactions are open, so a range of ids is never known
to be complete. Instead an id that was not found is noted as a gap. It belongs to a transaction that
was rolled back, or to one that is still open: then it appears later, is counted in the minute in
which it was published, and is a gap no longer. An id is either counted or in a gap, never both.
"""

from collections.abc import Iterable
from typing import Protocol

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.times import DAY, SECOND
from laneway.plan import Plan, Row

_CHUNK = 5_000
_MAX_CHUNKS = 4
_GAPS = 100
_LATE = 2_000  # late messages of a gap that one upkeep counts
_MAX_AGE = DAY


class PublishedSums(Protocol):
    def add_published(self, at: int, queue: bytes, kind: bytes, n: int) -> None: ...


class MysqlPublishedFold(MysqlBase):
    def _fold_published(
        self, figures: PublishedSums, start: int, seen: int, full: bool, now: int
    ) -> Plan[int]:
        """Up to what the last upkeep saw, because of what is newer much is not committed yet;
        returns how far it came. Without a ``full`` history messages end without a trace, so what
        is missing is no gap."""
        for _ in range(_MAX_CHUNKS):
            if start >= seen:
                break
            end = min(start + _CHUNK, seen)
            rows = yield self._statement("published_messages", start, end)
            if full and sum(int(row[3]) for row in rows) < end - start:
                rows = yield from self._note_gaps(start, end, now)
            for at, queue, kind, n in rows:
                figures.add_published(int(at), queue, kind, int(n))
            start = end
        yield from self._check_gaps(figures, now)
        return start

    def _note_gaps(self, start: int, end: int, now: int) -> Plan[list[Row]]:
        """Counts again, with what is missing in the same snapshot: a message that is committed
        between two statements would be neither counted nor missing."""
        ((step,),) = yield self._statement("id_step")
        rows = yield self._statement("published_and_missing", start, end, int(step))
        missing = [(int(row[0]), int(row[3])) for row in rows if row[1] is None]
        yield from self._insert("add_gaps", [(*gap, now, now + SECOND) for gap in missing])
        return [row for row in rows if row[1] is not None]

    def _check_gaps(self, figures: PublishedSums, now: int) -> Plan[None]:
        """Later each time, in proportion to the age of the gap: a transaction that was open for a
        minute is counted five minutes after it began at the latest."""
        gaps = yield self._statement("gaps_to_check", now, _GAPS)
        if not gaps:
            return
        ranges = [(int(row[0]), int(row[1]), _LATE) for row in gaps]
        late = yield self._union("published_in_gap", ranges)
        ids = set()
        for id, at, queue, kind in late:
            figures.add_published(int(at), queue, kind, 1)
            ids.add(int(id))
        yield self._statement("delete_gaps", [first for first, _, _ in ranges])
        left: list[Row] = []
        for first, last, noted_at in (map(int, row) for row in gaps):
            age = now - noted_at
            if age < _MAX_AGE:
                again = now + max(4 * age, SECOND)
                left += [(*part, noted_at, again) for part in _without(first, last, ids)]
        yield from self._insert("add_gaps", left)


def _without(first: int, last: int, ids: Iterable[int]) -> list[tuple[int, int]]:
    """The parts of a range that are left without these ids."""
    parts, start = [], first
    for id in sorted(id for id in ids if first <= id <= last):
        if id > start:
            parts.append((start, id - 1))
        start = id + 1
    if start <= last:
        parts.append((start, last))
    return parts
