"""The last step of a claim: serve the channels whose rows it has locked.

Invariants: what is consumed (wakes, positions) is also looked at, in a later statement, and what is
left is written back. The sum of n over a channel and its wakes is the number of its waiting
messages; its `leased` minus its wakes' `freed` is the number of its counted leases.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from laneway.engines.fairness import divide, rounds_for
from laneway.engines.mysql.base import MysqlBase
from laneway.plan import Plan, Row

from .channel import ChannelVisit, MysqlDueReads, Picked, due_message, pick
from .scan import Scan

MAX_WAKES = 5_000
MAX_SELECTS = 200  # in one statement
AT_ONCE = 4
"""Of how many priorities of a channel, the highest ones, as many messages are read as it may start.
Of lower ones only what is still missing then."""


class Served(NamedTuple):
    rows: list[Row]
    now: int
    more: bool
    """Whether the channels have more."""


class MysqlServe(MysqlBase):
    def _serve(
        self,
        scan: Scan,
        locked: Sequence[Row],
        limit: int,
        quantum: int,
        lease: int,
        worker: bytes,
    ) -> Plan[Served]:
        visits = {bytes(row[0]): ChannelVisit(row) for row in locked}
        order = [visits[channel.id] for channel in scan.channels if channel.id in visits]
        # Never before the scan: what was due then must be found.
        now = max(scan.now, *(int(visit.channel.now) for visit in order))
        read, by_kind = yield from self._read_wakes(visits, scan.wake_from, now)
        if by_kind > scan.by_kind:
            return Served([], now, True)  # wakes are read in another way now: scan again
        rounds = rounds_for([visit.supply for visit in order], limit)
        last = last_place(scan, visits, now)
        sole = len(scan.channels) == 1 and scan.channels[0].supply < limit
        for visit in order:
            visit.set_share(limit, quantum, last, sole, now)
            visit.set_quota(rounds, now)
        counts = divide([(visit.share, visit.quota) for visit in order], limit, rounds)
        for visit, count in zip(order, counts, strict=True):
            visit.taken = count
        starting = yield from self._find_messages(order, now)
        rows = yield from self._add_leases(starting, now, now + lease, worker, scan.pauses)
        if rows is None:
            return Served([], now, True)  # nothing was written; the next scan sees the pause
        moved = [visit.row_after(len(p.rows), p.more, p.positions, now) for visit, p in starting]
        changed = [row for row in moved if row is not None]
        yield from self._insert("update_served_channels", changed)
        if read:
            yield self._statement("delete_wakes", read)
        return Served(rows, now, sum(visit.supply for visit in order) > len(rows))

    def _read_wakes(
        self, visits: dict[bytes, ChannelVisit], start: int, now: int
    ) -> Plan[tuple[list[int], int]]:
        """Adds the channels' wakes to their visits; returns the ids of the wakes, and how many
        queues are claimed by kind."""
        rows = yield self._statement("read_wakes", sorted(visits), start, now, MAX_WAKES)
        by_channel: dict[bytes, list[Row]] = {}
        for row in rows:
            by_channel.setdefault(bytes(row[0]), []).append(row)
        for id, wakes in by_channel.items():
            visits[id].add_wakes(wakes)
        by_kind = max((int(row[7] or 0) for row in rows), default=0)
        return [int(id) for row in rows for id in text(row[2]).split(",")], by_kind

    def _find_messages(
        self, order: Sequence[ChannelVisit], now: int
    ) -> Plan[list[tuple[ChannelVisit, Picked]]]:
        """The messages of each channel, in the order in which they start."""
        starting = [
            (visit, MysqlDueReads(visit.positions, visit.taken, visit.channel.skips))
            for visit in order
        ]
        for highest in (True, False):
            wanted = [
                (number, visit.channel.id, priority, *visit.positions[priority], now, most)
                for number, (visit, reads) in enumerate(starting)
                if visit.taken > 0
                for priority, most in reads.next(AT_ONCE if highest else None)
            ]
            for start in range(0, len(wanted), MAX_SELECTS):
                rows = yield self._union("due_messages", wanted[start : start + MAX_SELECTS])
                for message in map(due_message, rows):
                    starting[message.visit][1].found.append(message)
        return [(visit, _picked(visit, reads)) for visit, reads in starting]

    def _add_leases(
        self,
        served: Sequence[tuple[ChannelVisit, Picked]],
        now: int,
        until: int,
        worker: bytes,
        pauses: int,
    ) -> Plan[list[Row] | None]:
        """Returns the rows that the engine contract asks for; None if something was paused since
        the scan."""
        ids = [message.id for _, picked in served for message in picked.rows]
        if not ids:
            return []
        rows = yield self._statement("add_fence_unless_paused", pauses)
        fence = int(rows[0][0])
        if not fence:
            return None
        yield from self._insert_leases(served, (fence, until, now), worker)
        claimed: list[Row] = []
        for visit, picked in served:
            names = text(visit.channel.queue), text(visit.channel.name)
            claimed += [message.claimed_row(fence, *names) for message in picked.rows]
        return claimed

    def _insert_leases(
        self,
        served: Sequence[tuple[ChannelVisit, Picked]],
        numbers: tuple[int, int, int],
        worker: bytes,
    ) -> Plan[None]:
        """``numbers``: fence, until, now."""
        ids = [message.id for _, picked in served for message in picked.rows]
        yield self._statement("add_leases", ids, *numbers, worker)


def last_place(scan: Scan, visits: Mapping[bytes, ChannelVisit], now: int) -> int:
    """The place of the last channel to serve. A channel that is in the ring and was only found by
    its wakes does not count: its place is behind all that was read of the ring, and a wake does not
    move it forward."""
    places = [
        channel.place
        for channel in scan.channels
        if channel.ringed or channel.id not in visits or not visits[channel.id].in_ring(now)
    ]
    return max(places, default=scan.channels[-1].place)


def _picked(visit: ChannelVisit, reads: MysqlDueReads) -> Picked:
    if visit.taken == 0:
        return Picked([], bool(visit.positions), visit.positions)
    return pick(reads, visit.positions, visit.taken, visit.channel.skips)


def text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
