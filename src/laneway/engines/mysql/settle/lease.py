"""Leases, and what their holders record: progress, results, and what is done once."""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from laneway.contract import Hold
from laneway.engines.mysql.base import MysqlSql, data, pair_id, repeatable, text
from laneway.engines.mysql.claim.channel import PARKED
from laneway.engines.times import micros, moment
from laneway.event import StoredResult
from laneway.model import Extension, Progress, ProgressNote, Results, Settled
from laneway.plan import Plan, Row

from .end import LostLease, MysqlSettleEnd


class MysqlResults:
    """Results: what handlers returned, and how messages ended whose results were to be kept."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def keep_results(self, results: Results, outcome: str, now: int) -> Plan[None]:
        """Of messages that end in this transaction. The caller has locked their leases."""
        rows = yield self._sql.statement("names_of_messages", sorted(id for id, _ in results))
        names = {int(row[0]): row[1:] for row in rows}
        yield from self._sql.insert(
            "keep_results",
            [
                (
                    *(id, now, now + micros(kept.keep), *names[id], outcome.encode()),
                    *(data(kept.content_type), kept.payload),
                )
                for (id, _), kept in results.items()
            ],
        )

    def keep_ended(self, ids: Sequence[int], outcome: bytes, now: int) -> Plan[None]:
        """Of messages that no handler ends. The caller deletes them afterwards."""
        yield self._sql.statement("keep_ended", ids, outcome, now)

    def delete_expired_results(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._sql.statement("expired_results", now, limit)
        if rows:
            yield self._sql.statement("delete_results", [int(row[0]) for row in rows])
        return len(rows)

    @repeatable
    def results(self, ids: Sequence[int]) -> Plan[list[StoredResult | None]]:
        rows = yield self._sql.statement("results", sorted(set(ids)), self._sql.now())
        found = {int(id): StoredResult(text(kind) or "", bytes(value)) for id, kind, value in rows}
        return [found.get(id) for id in ids]


class MysqlOnce:
    """once: record in the caller's transaction that something is done; true the first time.

    Invariant: of all transactions that ask for the same key, only one that commits gets true.
    Another one that asks meanwhile waits until the first has ended. Upkeep deletes expired keys."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @repeatable
    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        names = queue.encode(), key.encode()
        id, mark = pair_id(*names), secrets.randbits(62)
        rows = yield self._sql.statement("clock", self._sql.now())
        yield self._sql.statement("once", [(id, *names, int(rows[0][0]) + micros(keep), mark)])
        ((found, keep_until, now),) = yield self._sql.statement("read_once", id, self._sql.now())
        if int(found) == mark:
            return True
        if int(keep_until) > int(now):
            return False
        yield self._sql.statement("renew_once", int(now) + micros(keep), id)
        return True

    def delete_expired_once(self, now: int, limit: int) -> Plan[int]:
        """For upkeep. Not done by once itself: in the caller's transaction it would hold locks."""
        rows = yield self._sql.statement("expired_once", now, limit)
        if not rows:
            return 0
        ids = sorted(bytes(row[0]) for row in rows)
        rows = yield self._sql.statement("lock_expired_once", ids, now)
        if rows:
            yield self._sql.statement("delete_expired_once", [row[0] for row in rows])
        return len(rows)


Item = TypeVar("Item", bound=Row)
LeaseKey = tuple[int, int]
"""Message id and fence."""


class MysqlLeases:
    """Leases: lock them, extend them, and hold them for a batch of work.

    A lease that is locked may be gone by then. At REPEATABLE READ, MySQL's default and so what most
    callers have, a locking read of a row that does not exist locks the gap where it would be. For
    the newest messages that gap is everything to the right, where every claim adds its leases. So
    in such a transaction a missing lease gets a placeholder row first. Our own connections use READ
    COMMITTED and lock no gaps."""

    def __init__(self, sql: MysqlSql, ends: MysqlSettleEnd) -> None:
        self._sql = sql
        self._ends = ends

    def lock_leases(self, statement: str, leases: Sequence[LeaseKey]) -> Plan[Sequence[Row]]:
        """The statement's rows for those of the leases that are still held."""
        ids = sorted({id for id, _ in leases})
        yield self._sql.statement("add_lease_placeholders", ids, PARKED)._replace(guest=True)
        rows = yield self._sql.statement(statement, list(leases), self._sql.now())
        if len(rows) < len(leases):
            yield self._sql.statement("delete_lease_placeholders", ids)._replace(guest=True)
        return rows

    @repeatable
    def extend(
        self, extensions: Sequence[Extension], notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Settled]]:
        items = by_lease(extensions)
        rows = yield from self.lock_leases("lock_leases_to_extend", list(items))
        ends: dict[int, list[int]] = defaultdict(list)
        until: dict[LeaseKey, int] = {}
        for id, fence, old, now in rows:
            end = int(now) + micros(items[id, fence].length)
            ends[end].append(id)
            until[id, fence] = max(int(old), end)
        for end, ids in ends.items():
            yield self._sql.statement("extend", ids, end)
        if rows:
            *_, now = rows[0]
            yield from self._note_progress(notes, set(until), int(now))
        lost = [LostLease(*key) for key in items if key not in until]
        yield from self._ends.add_stale_history(lost, "extend")
        return [
            Settled(e.id, e.fence, "extended", moment(until[e.id, e.fence]))
            if (e.id, e.fence) in until
            else Settled(e.id, e.fence, "lost")
            for e in extensions
        ]

    @repeatable
    def hold(
        self, leases: Sequence[Row], span: timedelta, notes: Sequence[ProgressNote] = ()
    ) -> Plan[list[Hold]]:
        items = list(by_lease(leases))
        rows = yield self._sql.statement("lock_free_leases", items, self._sql.now())
        found: dict[LeaseKey, Hold] = {(id, fence): "extended" for id, fence, *_ in rows}
        if rows:
            *_, now = rows[0]
            ids = [id for id, *_ in rows]
            yield self._sql.statement("extend", ids, int(now) + micros(span))
            yield from self._note_progress(notes, set(found), int(now))
        if left := [item for item in items if item not in found]:
            rows = yield self._sql.statement("existing_leases", left)
            found |= {(id, fence): "locked" for id, fence, *_ in rows}
        return [found.get((id, fence), "lost") for id, fence, *_ in leases]

    def _note_progress(
        self, notes: Sequence[ProgressNote], held: set[LeaseKey], now: int
    ) -> Plan[None]:
        """Of the leases that this transaction has locked."""
        rows = sorted(
            (note.id, note.fence, now, note.share, data(note.note and note.note[:500]))
            for note in notes
            if (note.id, note.fence) in held
        )
        yield from self._sql.insert("note_progress", rows)

    @repeatable
    def progress(self, ids: Sequence[int]) -> Plan[list[Progress | None]]:
        rows = yield self._sql.statement("progress", sorted(set(ids)))
        found = {
            int(id): Progress(share, text(note), moment(at), int(fence))
            for id, share, note, at, fence in rows
        }
        return [found.get(id) for id in ids]

    def delete_old_progress(self, now: int, limit: int) -> Plan[int]:
        rows = yield self._sql.statement("old_progress", now, limit)
        if rows:
            yield self._sql.statement("delete_progress", [int(row[0]) for row in rows])
        return len(rows)


def by_lease(items: Sequence[Item]) -> dict[LeaseKey, Item]:
    """In id order; of several items for the same lease, the first."""
    found: dict[LeaseKey, Item] = {}
    for item in sorted(items, key=lambda item: (item[0], item[1])):
        found.setdefault((item[0], item[1]), item)
    return found
