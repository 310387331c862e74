"""The last step of a claim: serve the channels whose rows it has locked; where queues are claimed
by kind, it keeps the lanes too.

Invariants: what is consumed (wakes, positions) is also looked at, in a later statement, and what is
left is written back. The sum of n over a channel and its wakes is the number of its waiting
messages; its `leased` minus its wakes' `freed` is the number of its counted leases. A message that
waits in a queue that is claimed by kind is in kind_message after a position of its lane, or after a
wake of it; or else after a position of the lane '-' or after a plain wake, and then a claim that
visits the channel puts it there. Lanes are read and written only under the channel's lock.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from laneway.engines.fairness import Pace, divide, start_order
from laneway.engines.mysql.base import MysqlSql
from laneway.plan import Plan, Row

from .channel import (
    PARKED,
    ChannelVisit,
    DueMessage,
    MysqlDueReads,
    MysqlTimes,
    Picked,
    due_message,
    lease_rows,
    pick,
    rounds_to_fill,
)
from .lanes import LaneVisit, lane_of, lane_of_message
from .scan import UNSORTED, Scan

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


class MysqlServe:
    def __init__(self, sql: MysqlSql, times: MysqlTimes) -> None:
        self._sql = sql
        self._times = times

    def serve(
        self,
        scan: Scan,
        locked: Sequence[Row],
        limit: int,
        quantum: int,
        lease: int,
        worker: bytes,
        paces: Mapping[bytes, Pace],
    ) -> Plan[Served]:
        visits = {bytes(row[0]): ChannelVisit(row) for row in locked}
        order = [visits[channel.id] for channel in scan.channels if channel.id in visits]
        # Never before the scan: what was due then must be found.
        now = max(scan.now, *(int(visit.channel.now) for visit in order))
        read, by_kind = yield from self._read_wakes(visits, scan.wake_from, now)
        if by_kind > scan.by_kind:
            return Served([], now, True)  # wakes are read in another way now: scan again
        yield from self._times.read_times(order, paces)
        share_out(order, scan, visits, limit, quantum, now)
        starting = yield from self._find_messages(order, now)
        rows = yield from self._add_leases(starting, now, now + lease, worker, scan.pauses)
        if rows is None:
            return Served([], now, True)  # nothing was written; the next scan sees the pause
        moved = [visit.row_after(len(p.rows), p.more, p.positions, now) for visit, p in starting]
        changed = [row for row in moved if row is not None]
        yield from self._sql.insert("update_served_channels", changed)
        yield from self._times.write_times([(visit, len(p.rows)) for visit, p in starting])
        if read:
            yield self._sql.statement("delete_wakes", read)
        return Served(rows, now, sum(visit.supply for visit in order) > len(rows))

    def _read_wakes(
        self, visits: dict[bytes, ChannelVisit], start: int, now: int
    ) -> Plan[tuple[list[int], int]]:
        """Adds the channels' wakes to their visits; returns the ids of the wakes, and how many
        queues are claimed by kind."""
        rows = yield self._sql.statement("read_wakes", sorted(visits), start, now, MAX_WAKES)
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
                rows = yield self._sql.union("due_messages", wanted[start : start + MAX_SELECTS])
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
        rows = yield self._sql.statement("add_fence_unless_paused", pauses)
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
        if any(visit.pace is not None for visit, _ in served):
            yield from self._sql.insert("add_known_leases", lease_rows(served, numbers, worker))
            return
        ids = [message.id for _, picked in served for message in picked.rows]
        yield self._sql.statement("add_leases", ids, *numbers, worker)


def share_out(
    order: Sequence[ChannelVisit],
    scan: Scan,
    visits: Mapping[bytes, ChannelVisit],
    limit: int,
    quantum: int,
    now: int,
) -> None:
    """How many each of them starts."""
    if scan.out_of_turn is not None:
        for visit in order:
            visit.start_out_of_turn(scan.out_of_turn[visit.channel.id], now)
        return
    last = last_place(scan, visits, now)
    sole = len(scan.channels) == 1 and scan.channels[0].supply < limit
    for visit in order:
        visit.set_share(limit, quantum, last, sole, now)
    rounds = rounds_to_fill(order, limit, scan.all)
    for visit in order:
        visit.set_quota(rounds, now)
    counts = divide([(visit.share, visit.quota) for visit in order], limit, rounds)
    for visit, count in zip(order, counts, strict=True):
        visit.taken = count


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


_SORTED = 1_000
"""Messages of a channel and priority that one visit puts into lanes."""


class MysqlLaneServe(MysqlServe):
    def __init__(self, sql: MysqlSql, times: MysqlTimes) -> None:
        super().__init__(sql, times)
        self.kind_queues: frozenset[bytes] = frozenset()
        """As far as they are known to be committed; a queue never leaves."""

    def claim_by_kind(self, queues: Sequence[str]) -> Plan[None]:
        """Makes the queues ready for claims by kind, if they are not.

        It locks channels as a claim does and then counts, which makes claims look again that have
        scanned before. So whoever locks a channel later knows that the queue is claimed by kind.
        """
        names = {queue.encode() for queue in queues}
        if names <= self.kind_queues:
            return
        known = self.kind_queues = yield from self._read_kind_queues()
        for name in sorted(names - known):
            yield self._sql.statement("add_kind_queue", name)
            channels = yield self._sql.statement("lock_known_channels", name)
            rows = [(id, UNSORTED, name, 0, 0.0, 0, places) for id, places in channels if places]
            yield from self._sql.insert("add_lanes", rows)
        if names - known:
            yield self._sql.statement("count_kind_queues")

    def _read_kind_queues(self) -> Plan[frozenset[bytes]]:
        rows = yield self._sql.statement("kind_queues")
        return frozenset(bytes(row[0]) for row in rows)

    def serve_lanes(
        self,
        scan: Scan,
        locked: Sequence[Row],
        limit: int,
        quantum: int,
        lease: int,
        worker: bytes,
        paces: Mapping[bytes, Pace],
        names: Sequence[bytes] | None,
    ) -> Plan[Served]:
        queues = self.kind_queues
        if len(queues) != scan.by_kind:
            queues = yield from self._read_kind_queues()
            if names is None:  # otherwise this claim may have added one, and be rolled back
                self.kind_queues = queues
        visits = {bytes(row[0]): LaneVisit(row, names, bytes(row[1]) in queues) for row in locked}
        order = [visits[channel.id] for channel in scan.channels if channel.id in visits]
        now = max(scan.now, *(int(visit.channel.now) for visit in order))
        read = yield from self._read_plain_wakes(visits, scan.wake_from, now)
        kind_read = yield from self._read_kind_wakes(visits, scan.wake_from, now, names)
        yield from self._read_lanes(visits)
        yield from self._sort_messages(order, now)
        for visit in order:
            visit.find_ring()
        yield from self._times.read_times(order, paces)
        share_out(order, scan, visits, limit, quantum, now)
        starting: Sequence[tuple[ChannelVisit, Picked]]
        if names is None:
            starting = yield from self._find_messages(order, now)
        else:
            starting = yield from self._find_of_lanes(order, now)
        for visit, (_, found) in zip(order, starting, strict=True):
            visit.started = list(found.rows)
        rows = yield from self._add_leases(starting, now, now + lease, worker, scan.pauses)
        if rows is None:
            return Served([], now, True)
        yield from self._write_back(order, starting, names, now)
        yield from self._times.write_times([(visit, len(visit.started)) for visit in order])
        if read:
            yield self._sql.statement("delete_wakes", read)
        if kind_read:
            yield self._sql.statement("delete_kind_wakes", kind_read)
        unsorted = any(UNSORTED in v.lanes and v.lanes[UNSORTED].positions for v in order)
        more = unsorted or any(
            len(v.started) == v.taken and (v.taken or v.pace is not None) and _has_more(v)
            for v in order
        )
        return Served(rows, now, more)

    def _read_plain_wakes(
        self, visits: dict[bytes, LaneVisit], start: int, now: int
    ) -> Plan[list[int]]:
        """Messages that these wakes tell of may not be in lanes yet."""
        rows = yield self._sql.statement("read_wakes", sorted(visits), start, now, MAX_WAKES)
        for visit, wakes in _by_visit(visits, rows):
            visit.add_wakes(wakes)
            for _, priority, _, _, _, due, id, *_ in wakes:
                if due is not None and visit.by_kind:
                    visit.lane(UNSORTED).lower(int(priority), (int(due), int(id) - 1))
        return [int(id) for row in rows for id in text(row[2]).split(",")]

    def _read_kind_wakes(
        self, visits: dict[bytes, LaneVisit], start: int, now: int, names: Sequence[bytes] | None
    ) -> Plan[list[int]]:
        """Of the lanes of the claim; of all lanes where all kinds have one order."""
        whole = sorted(id for id, visit in visits.items() if names is None or visit.strict)
        rows: list[Row] = []
        if whole:
            rows += yield self._sql.statement("read_all_kind_wakes", whole, start, now, MAX_WAKES)
        some = sorted(id for id in visits if id not in set(whole))
        if some and names is not None:
            asked = (some, start, now, MAX_WAKES, list(names))
            rows += yield self._sql.statement("read_kind_wakes", *asked)
        for visit, wakes in _by_visit(visits, rows):
            visit.add_wakes(wakes)
            for _, priority, _, _, _, due, id, lane in wakes:
                if due is not None:
                    visit.lane(bytes(lane)).lower(int(priority), (int(due), int(id) - 1))
        return [int(id) for row in rows for id in text(row[2]).split(",")]

    def _read_lanes(self, visits: dict[bytes, LaneVisit]) -> Plan[None]:
        rows = yield self._sql.statement("lanes_of_channels", sorted(visits))
        for visit, lanes in _by_visit(visits, rows):
            visit.add_lanes(lanes)

    def _sort_messages(self, order: Sequence[LaneVisit], now: int) -> Plan[None]:
        """Puts messages into lanes, of each channel and priority the next ones that are due."""
        wanted = [
            (number, visit.channel.id, priority, *position, now, _SORTED)
            for number, visit in enumerate(order)
            if UNSORTED in visit.lanes
            for priority, position in visit.lanes[UNSORTED].positions.items()
        ]
        new: list[tuple[Any, ...]] = []
        for start in range(0, len(wanted), MAX_SELECTS):
            part = wanted[start : start + MAX_SELECTS]
            rows = yield self._sql.union("unsorted_messages", part)
            seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
            for number, priority, due, id, kind, found, leased in rows:
                visit = order[int(number)]
                seen.setdefault((int(number), int(priority)), []).append((int(due), int(id)))
                if leased:
                    continue
                lane = lane_of(bytes(kind))
                visit.lane(lane).lower(int(priority), (int(due), int(id) - 1))
                if not found:
                    new.append((visit.channel.id, lane, int(priority), int(due), int(id)))
            for number, _, priority, *_ in part:
                unsorted = order[number].lanes[UNSORTED]
                passed = seen.get((number, priority), [])
                if len(passed) < _SORTED:
                    del unsorted.positions[priority]
                else:
                    unsorted.positions[priority] = max(passed)
        yield from self._sql.insert("add_kind_messages", new)

    def _find_of_lanes(
        self, order: Sequence[LaneVisit], now: int
    ) -> Plan[list[tuple[LaneVisit, Picked]]]:
        wanted, heads = [], []
        for number, visit in enumerate(order):
            if visit.taken <= 0:
                continue
            if visit.strict:
                heads += [
                    (number, visit.channel.id, priority, *position, now, 1)
                    for priority, position in visit.positions.items()
                ]
                continue
            for lane in visit.chosen():
                for priority, position in lane.positions.items():
                    place = (number, visit.channel.id, lane.name, priority, *position, now)
                    wanted.append((*place, visit.taken + 1))
        found: dict[int, list[DueMessage]] = {}
        for name, asked in (("due_kind_messages", wanted), ("due_messages", heads)):
            for start in range(0, len(asked), MAX_SELECTS):
                rows = yield self._sql.union(name, asked[start : start + MAX_SELECTS])
                for message in map(due_message, rows):
                    found.setdefault(message.visit, []).append(message)
        starting = []
        for number, visit in enumerate(order):
            messages: list[DueMessage] = []
            if visit.taken > 0 and visit.strict:
                messages = self._head(visit, found.get(number, []))
            elif visit.taken > 0:
                messages = visit.pick_lanes(found.get(number, []))
            starting.append((visit, Picked(messages, bool(visit.positions), visit.positions)))
        return starting

    def _insert_leases(
        self,
        served: Sequence[tuple[ChannelVisit, Picked]],
        numbers: tuple[int, int, int],
        worker: bytes,
    ) -> Plan[None]:
        """What a claim of some kinds found has no lease, and its channel is at hand."""
        if not all(isinstance(visit, LaneVisit) and visit.names is not None for visit, _ in served):
            yield from super()._insert_leases(served, numbers, worker)
            return
        yield from self._sql.insert("add_known_leases", lease_rows(served, numbers, worker))

    def _delete_taken(self, visit: LaneVisit) -> Plan[None]:
        """They wait no more: claims by kind are not to pass over them."""
        taken: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
        for m in visit.started:
            taken.setdefault((lane_of_message(m), m.priority), []).append((m.id, m.due))
        for (lane, priority), pairs in taken.items():
            asked = visit.channel.id, lane, priority, sorted(pairs)
            yield self._sql.statement("delete_taken", *asked)

    def _head(self, visit: LaneVisit, heads: Sequence[DueMessage]) -> list[DueMessage]:
        """The next message of a channel that starts one at a time, if it is of these kinds."""
        skips = visit.channel.skips
        first = start_order(heads, 1, skips, lambda m: m.priority, lambda m: m.position)
        if not first:
            for lane in visit.chosen():
                lane.positions = {}
            return []
        if visit.names is not None and lane_of_message(first[0]) in visit.names:
            return first
        visit.held_until = first[0].expires_at or PARKED
        return []

    def _write_back(
        self,
        order: Sequence[LaneVisit],
        starting: Iterable[tuple[Any, Picked]],
        names: Sequence[bytes] | None,
        now: int,
    ) -> Plan[None]:
        if names is None:
            moved = [
                visit.row_after(len(p.rows), p.more, p.positions, now) for visit, p in starting
            ]
        else:
            moved = [visit.channel_after(now) for visit in order]
        yield from self._sql.insert(
            "update_served_channels", [row for row in moved if row is not None]
        )
        for visit in order:
            if visit.by_kind:
                yield from self._delete_taken(visit)
        write: list[tuple[Any, ...]] = []
        for visit in order:
            visit.move_lanes(now)
            changed, gone = visit.lanes_after()
            write += changed
            for id, name in gone:
                yield self._sql.statement("delete_lane", id, name)
        yield from self._sql.insert("add_lanes", write)


def _has_more(visit: LaneVisit) -> bool:
    return bool(visit.chosen()) if visit.names is not None else visit.supply > len(visit.started)


def _by_visit(
    visits: dict[bytes, LaneVisit], rows: Iterable[Row]
) -> list[tuple[LaneVisit, list[Row]]]:
    grouped: dict[bytes, list[Row]] = {}
    for row in rows:
        grouped.setdefault(bytes(row[0]), []).append(row)
    return [(visits[id], found) for id, found in grouped.items()]
