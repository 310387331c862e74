"""claim: ready channels in turn, in whole rounds, until the batch is full.

A claim that would find nothing writes nothing: it reads before it takes the write lock.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter

from laneway.engines.fairness import QUANTUM, ChannelId, Pace, whole_rounds
from laneway.engines.kind_pauses import put_back_for
from laneway.engines.sqlite.base import SqliteSql, WriteState, listed
from laneway.engines.sqlite.channels import SqliteLanes
from laneway.engines.sqlite.events import SqliteEventOutbox
from laneway.engines.times import micros, moment
from laneway.model import ClaimStatus
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Row, Taken

from .channel import (
    HIGH,
    SqliteClaimChannel,
    SqliteDueReads,
    Start,
    bands_of,
    has_high,
    low_priorities,
)

WOKEN = 100
"""A claim wakes at most this many channels more than its batch has messages."""


class ClaimBatch:
    """What one claim takes: how much room is left, the last turn given, the channels visited."""

    def __init__(self, limit: int, turn: int) -> None:
        self.left = limit
        self.turn = turn
        self.visited: dict[SqliteClaimChannel, None] = {}
        self.paces: dict[str, Pace] = {}
        """Of the queues that are fair by time."""

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def unfinished(self) -> list[SqliteClaimChannel]:
        """Channels that may start more, in turn."""
        return [channel for channel in self.visited if channel.has_more() and channel.room()]

    def rounds(self, channels: Sequence[SqliteClaimChannel]) -> int:
        """How many whole rounds over these channels fit; one if none does."""
        most = max(channel.share.rounds_to(self.left) for channel in channels)
        offers = [(channel.share, channel.room()) for channel in channels]
        return max(1, whole_rounds(offers, self.left, most))


class SqliteClaim:
    def __init__(self, sql: SqliteSql, outbox: SqliteEventOutbox, lanes: SqliteLanes) -> None:
        self._sql = sql
        self._outbox = outbox
        self._lanes = lanes

    def claim(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str
    ) -> Plan[Taken]:
        now = self._sql.now()
        rows = yield self._sql.read_outside("claim_status", listed(queues), now)
        if not rows[0][0]:
            return nothing(rows[0], now)
        limited = bool(rows[0][3])
        state = yield from self._sql.begin_write(fences=1)
        until = state.now + micros(lease)
        channels = yield from self._serve(queues, limit, state, until)
        ids = [start[2] for channel in channels for start in channel.taken]

        def status() -> Plan[Row]:
            return self._claim_status(queues, state.now)

        taken = yield from self._answer(ids, limit, worker, state, until, status)
        return taken._replace(limited=limited)

    def claim_out_of_turn(
        self,
        queues: tuple[str, ...],
        counts: Mapping[ChannelId, int],
        lease: timedelta,
        worker: str,
    ) -> Plan[Taken]:
        """Up to so many messages of each of these channels, whosever turn it is."""
        state = yield from self._sql.begin_write(fences=1)
        until = state.now + micros(lease)
        batch = ClaimBatch(sum(counts.values()), state.turn)
        batch.paces = yield from self._paces(queues, state)
        rows = yield self._sql.statement("ready_among", listed(counts), state.now)
        channels = [SqliteClaimChannel(row[1:], state.now) for row in rows]
        if batch.paces:
            timed = {id: batch.paces[queue] for queue, id, *_ in rows if queue in batch.paces}
            yield from self._share_times(channels, timed)
        yield from self._visit_out_of_turn(batch, channels, counts)
        yield from self._lease_visited(batch, state, until)
        ids = [start[2] for channel in channels for start in channel.taken]

        def status() -> Plan[Row]:
            return self._claim_status(queues, state.now)

        return (yield from self._answer(ids, len(ids), worker, state, until, status))

    def _answer(
        self,
        ids: Sequence[int],
        limit: int,
        worker: str,
        state: WriteState,
        until: int,
        status: Callable[[], Plan[Row]],
        by_kind: bool = False,
    ) -> Plan[Taken]:
        """What a claim answers that has leased these messages; one by kind takes none of a paused
        kind."""
        if not ids:
            return nothing((yield from status()), state.now)
        yield self._sql.statement("add_claim", state.fence, until, state.now, worker)
        if by_kind:
            rows = yield self._sql.statement("claimed_of_kind", listed(ids), state.fence)
        else:
            rows = yield self._sql.statement(
                "claimed_messages", listed(ids), state.fence, state.now
            )
        yield from self._outbox.add_events("claimed", ids, state)
        look_again = None
        if len(ids) < limit:
            look_again = _wait((yield from status()), state.now)
        times = (moment(state.now), moment(until))
        return Taken(rows, ClaimStatus.GOT, look_again, *times, _paused(rows, state.now))

    def _claim_status(self, queues: tuple[str, ...], now: int) -> Plan[Row]:
        """Ready, blocked, when the next channel wakes, and whether anything waits for limits."""
        rows = yield self._sql.statement("claim_status", listed(queues), now)
        return rows[0]

    def _serve(
        self, queues: tuple[str, ...], limit: int, state: WriteState, until: int
    ) -> Plan[list[SqliteClaimChannel]]:
        """Leases messages until the batch is full, and updates the rows of their channels."""
        turn = state.turn
        for queue in queues:
            yield self._sql.statement("wake_channels", queue, state.now, turn, limit + WOKEN)
            turn += limit + WOKEN
        batch = ClaimBatch(limit, turn)
        batch.paces = yield from self._paces(queues, state)
        yield from self._first_round(queues, limit, batch, state.now)
        while batch.left and (channels := batch.unfinished()):
            yield from self._visit(batch, channels, batch.rounds(channels))
        yield from self._lease_visited(batch, state, until)
        return list(batch.visited)

    def _lease_visited(self, batch: ClaimBatch, state: WriteState, until: int) -> Plan[None]:
        visited = list(batch.visited)
        taken = [(*last, state.now) for channel in visited for last in channel.last_taken()]
        yield self._sql.many("add_leases", [(*last, state.fence, until) for last in taken])
        yield self._sql.many("delete_claimed_waiting", taken)
        dues = {}
        for channel in visited:
            dues[channel] = yield from self._next_due(channel)
        rows = [channel.row_after(due) for channel, due in dues.items()]
        yield self._sql.many("update_served_channel", rows)
        yield from self._note_times(batch)
        if state.by_kind:
            ids = [start[2] for channel in visited for start in channel.taken]
            yield from self._lanes.no_longer_waiting(ids, state)
            turns = [(channel.id, batch.next_turn()) for channel in visited]
            yield from self._lanes.schedule_lanes(turns, state.now)
        yield self._sql.statement("set_turn", batch.turn)

    def _first_round(
        self, queues: tuple[str, ...], limit: int, batch: ClaimBatch, now: int
    ) -> Plan[None]:
        """Over all ready channels, or until the batch is full."""
        after, page = -1, limit // QUANTUM + 2
        while batch.left:
            found: list[Row] = []
            timed: dict[int, Pace] = {}
            for queue in queues:
                ready = yield self._sql.statement("ready_channels", queue, after, page, now)
                found += ready
                if queue in batch.paces:
                    timed |= dict.fromkeys((row[0] for row in ready), batch.paces[queue])
            rows = sorted(found, key=itemgetter(1))[:page]
            if not rows:
                return
            channels = [SqliteClaimChannel(row, now) for row in rows]
            if timed:
                yield from self._share_times(channels, timed)
            after = channels[-1].turn
            page = min(4 * page, limit)
            yield from self._visit(batch, channels, 1)

    def _paces(self, queues: tuple[str, ...], state: WriteState) -> Plan[dict[str, Pace]]:
        """Of the queues that are fair by time."""
        if not state.fair:
            return {}
        rows = yield self._sql.statement("fair_paces", listed(queues))
        yield self._sql.many("note_reached", [(queue, reached) for queue, reached, _ in rows])
        return {queue: Pace(reached, turn) for queue, reached, turn in rows}

    def _share_times(
        self, channels: Sequence[SqliteClaimChannel], timed: Mapping[int, Pace]
    ) -> Plan[None]:
        """Gives channels of queues that are fair by time their shares."""
        rows = yield self._sql.statement("fair_channels", listed(timed))
        known = {row[0]: row[1:] for row in rows}
        for channel in channels:
            if channel.id in timed:
                channel.go_by_time(timed[channel.id], known.get(channel.id))

    def _note_times(self, batch: ClaimBatch) -> Plan[None]:
        if batch.paces:
            rows = [row for channel in batch.visited if (row := channel.time_row()) is not None]
            yield self._sql.many("note_time", rows)

    def _visit(
        self, batch: ClaimBatch, channels: Sequence[SqliteClaimChannel], rounds: int
    ) -> Plan[None]:
        """Visits each channel once, for its share of so many rounds, until the batch is full."""
        for number, channel in enumerate(channels):
            if not batch.left:
                return
            batch.visited[channel] = None
            count = channel.share.visit(rounds, channel.room(), batch.left)
            yield from self._read_on(channel, count, batch.left // (len(channels) - number))
            batch.left -= channel.take(count)
            if not channel.share.cut:
                channel.turn = batch.next_turn()

    def _visit_out_of_turn(
        self,
        batch: ClaimBatch,
        channels: Sequence[SqliteClaimChannel],
        counts: Mapping[ChannelId, int],
    ) -> Plan[None]:
        """They keep their turns."""
        for channel in channels:
            batch.visited[channel] = None
            count = min(counts[channel.id], channel.room())
            yield from self._read_on(channel, count, count)
            batch.left -= channel.take(count)

    def _read_on(self, channel: SqliteClaimChannel, count: int, likely: int) -> Plan[None]:
        """Makes sure that the next ``count`` messages are known, and whether more come after. Reads
        on for ``likely`` ones at once, which later rounds will want."""
        taken = len(channel.taken)
        total = taken + count
        if not count or channel.all_known or channel.reach > total:
            return
        reach = max(total, 2 * channel.reach, taken + min(likely, channel.room())) + 1
        starts, all_known = yield from self._read_due(channel, reach)
        channel.learn(starts, reach, all_known)

    def _read_due(self, channel: SqliteClaimChannel, reach: int) -> Plan[tuple[list[Start], bool]]:
        """What the first ``reach`` starts are taken from, and whether that is all that is due."""
        known = SqliteDueReads(reach, channel.skips)
        for priority in (yield from self._priorities(channel.id, channel.bands)):
            if most := known.most():
                params = (channel.id, priority, channel.now, most)
                known.add((yield self._sql.statement("due_messages", *params)))
        return known.starts, known.all_known

    def _priorities(self, channel_id: int, bands: int, kind: str | None = None) -> Plan[list[int]]:
        """Those that the channel may have messages of (of one kind), the highest first."""
        if not has_high(bands):
            return low_priorities(bands)
        if kind is None:
            rows = yield self._sql.statement("high_priorities", channel_id, HIGH)
        else:
            rows = yield self._sql.statement("high_priorities_of_kind", channel_id, kind, HIGH)
        return [row[0] for row in rows] + low_priorities(bands)

    def _next_due(self, channel: SqliteClaimChannel) -> Plan[int | None]:
        """When the channel can start its next message; clears the bits of priorities that have no
        messages."""
        if channel.has_more() or channel.waiting == len(channel.taken):
            return channel.next_due()
        priorities = yield from self._priorities(channel.id, channel.bands)
        rows = yield self._sql.statement("next_due", channel.id, listed(priorities), channel.now)
        dues = {priority: due for priority, due in rows if due is not None}
        channel.bands = bands_of(dues)
        return min(dues.values(), default=None)


def _paused(rows: Sequence[Row], now: int) -> dict[tuple[str, str], timedelta]:
    """The kinds among these messages that are paused."""
    found = {}
    for row in rows:
        queue, kind, pause = row[Column.QUEUE], row[Column.KIND], row[-1]
        if pause is None:
            continue
        since, until = json.loads(pause)
        left = None if until is None else timedelta(microseconds=until - now)
        found[queue, kind] = put_back_for(timedelta(microseconds=now - since), left)
    return found


def nothing(seen: Row, now: int) -> Taken:
    status = ClaimStatus.BLOCKED if seen[1] else ClaimStatus.EMPTY
    return Taken([], status, _wait(seen, now), None, None, limited=bool(seen[3]))


def _wait(seen: Row, now: int) -> timedelta | None:
    """None if nothing is known to come, zero if more is there."""
    ready, _, next_at = seen[:3]
    if ready:
        return timedelta(0)
    return None if next_at is None else timedelta(microseconds=next_at - now)
