"""claim by kind: the same turns, shares and limits, over the lanes of some kinds.

The first claim by kind of a queue puts what waits there into lanes, in steps: until that is done it
answers that it is busy.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import itemgetter

from laneway.engines.fairness import QUANTUM, ChannelId, start_order
from laneway.engines.sqlite.base import SqliteSql, WriteState, listed
from laneway.engines.sqlite.channels import CountChanges, SqliteChannelRows, SqliteLanes
from laneway.engines.sqlite.events import SqliteEventOutbox
from laneway.engines.times import micros
from laneway.model import ClaimStatus
from laneway.plan import Plan, Row, Taken

from .channel import (
    SqliteClaimChannel,
    SqliteDueReads,
    SqliteKindVisit,
    SqliteLane,
    Start,
    bands_of,
)
from .claim import WOKEN, ClaimBatch, SqliteClaim, nothing

_MOVED = 20_000
"""Messages that one claim puts into lanes."""

Kinds = tuple[str, ...]


class SqliteKindClaim(SqliteClaim):
    def __init__(
        self, sql: SqliteSql, rows: SqliteChannelRows, lanes: SqliteLanes, outbox: SqliteEventOutbox
    ) -> None:
        super().__init__(sql, outbox, lanes)
        self._rows = rows

    def claim_kinds(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str, kinds: Kinds
    ) -> Plan[Taken]:
        now = self._sql.now()
        rows = yield self._sql.read_outside("lane_status", listed(queues), listed(kinds), now)
        ready, *_, unready = rows[0]
        if not ready and not unready:
            return nothing(rows[0][:4], now)
        limited = bool(rows[0][3])
        state = yield from self._sql.begin_write(fences=1)
        if unready:
            state = state._replace(by_kind=True)
            for queue in queues:
                if not (yield from self._make_ready(queue, state)):
                    return Taken([], ClaimStatus.BUSY, timedelta(0), None, None)
            state = (yield from self._sql.begin_write())._replace(fence=state.fence)
        until = state.now + micros(lease)
        visits = yield from self._serve_kinds(queues, kinds, limit, state, until)
        ids = [start[2] for visit in visits for start in visit.taken]

        def status() -> Plan[Row]:
            return self._lane_status(queues, kinds, state.now)

        taken = yield from self._answer(ids, limit, worker, state, until, status, True)
        return taken._replace(limited=limited)

    def claim_kinds_out_of_turn(
        self,
        queues: tuple[str, ...],
        counts: Mapping[ChannelId, int],
        lease: timedelta,
        worker: str,
        kinds: Kinds,
    ) -> Plan[Taken]:
        """Up to so many messages of each of these channels, whosever turn it is."""
        state = yield from self._sql.begin_write(fences=1)
        until = state.now + micros(lease)
        batch = ClaimBatch(sum(counts.values()), state.turn)
        batch.paces = yield from self._paces(queues, state)
        visits = yield from self._visits_of(list(counts), listed(kinds), batch, state.now)
        yield from self._visit_out_of_turn(batch, visits, counts)
        yield from self._lease_kinds(batch, state, until)
        ids = [start[2] for visit in visits for start in visit.taken]

        def status() -> Plan[Row]:
            return self._lane_status(queues, kinds, state.now)

        return (yield from self._answer(ids, len(ids), worker, state, until, status, True))

    def _lane_status(self, queues: tuple[str, ...], kinds: Kinds, now: int) -> Plan[Row]:
        rows = yield self._sql.statement("lane_status", listed(queues), listed(kinds), now)
        return rows[0][:4]

    def _make_ready(self, queue: str, state: WriteState) -> Plan[bool]:
        """Whether all that waits in the queue is in lanes now."""
        if (yield self._sql.statement("add_kind_queue", queue)):
            yield self._sql.statement("count_kind_queue")
        ((moved_to, end, ready),) = yield self._sql.statement("kind_queue", queue)
        if ready:
            return True
        done = yield from self._move(queue, moved_to, end)
        if done:
            yield self._sql.statement("add_lanes", queue)
            rows = yield self._sql.statement("lane_channels", queue)
            numbers = yield from self._sql.begin_write(turns=len(rows))
            turns = [(row[0], numbers.turn + number) for number, row in enumerate(rows)]
            yield from self._lanes.schedule_lanes(turns, state.now)
        return done

    def _move(self, queue: str, moved_to: int, end: int) -> Plan[bool]:
        """A small queue at once; of a large one what waits among the next messages of all."""
        ((waiting,),) = yield self._sql.statement("waiting_in_queue", queue)
        if waiting <= _MOVED:
            yield self._sql.statement("move_queue", queue)
            last = end
        else:
            rows = yield self._sql.statement("end_of_move", moved_to, end, _MOVED)
            last = end if rows[0][0] is None else rows[0][0]
            yield self._sql.statement("move_waiting", queue, moved_to, last)
        yield self._sql.statement("moved", queue, last, last >= end)
        return bool(last >= end)

    def _serve_kinds(
        self,
        queues: tuple[str, ...],
        kinds: Kinds,
        limit: int,
        state: WriteState,
        until: int,
    ) -> Plan[list[SqliteKindVisit]]:
        turn = state.turn
        names = listed(queues), listed(kinds)
        for queue, kind in (yield self._sql.statement("lanes_to_wake", *names, state.now)):
            woken = limit + WOKEN
            yield self._sql.statement("wake_lanes", queue, kind, state.now, turn, woken)
            turn += woken
        batch = ClaimBatch(limit, turn)
        batch.paces = yield from self._paces(queues, state)
        yield from self._first_round_of_kinds(names, limit, batch, state.now)
        while batch.left and (channels := batch.unfinished()):
            yield from self._visit(batch, channels, batch.rounds(channels))
        return (yield from self._lease_kinds(batch, state, until))

    def _lease_kinds(
        self, batch: ClaimBatch, state: WriteState, until: int
    ) -> Plan[list[SqliteKindVisit]]:
        visits = [visit for visit in batch.visited if isinstance(visit, SqliteKindVisit)]
        yield from self._lease_lanes(visits, state, until)
        yield from self._update_visited(visits, batch, state)
        yield from self._note_times(batch)
        yield self._sql.statement("set_turn", batch.turn)
        return visits

    def _first_round_of_kinds(
        self, names: tuple[str, str], limit: int, batch: ClaimBatch, now: int
    ) -> Plan[None]:
        """Over all channels that have a lane that is ready, or until the batch is full."""
        after, page, seen = -1, limit // QUANTUM + 2, set[int]()
        while batch.left:
            found: list[tuple[int, int]] = []
            for row in (yield self._sql.statement("ready_lanes", *names, after, page, now)):
                found += map(tuple, json.loads(row[0]))
            lanes = sorted(found, key=itemgetter(0))[:page]
            if not lanes:
                return
            after = lanes[-1][0]
            ids = [id for id in dict.fromkeys(id for _, id in lanes) if id not in seen]
            seen.update(ids)
            visits = yield from self._visits_of(ids, names[1], batch, now)
            page = min(4 * page, limit + 2)
            yield from self._visit(batch, visits, 1)

    def _visits_of(
        self, ids: Sequence[ChannelId], kinds: str, batch: ClaimBatch, now: int
    ) -> Plan[list[SqliteKindVisit]]:
        rows = yield self._sql.statement("lanes_of_channels", listed(ids), kinds, now)
        by_channel: dict[int, list[Row]] = {}
        for row in rows:
            by_channel.setdefault(row[0], []).append(row)
        visits = [SqliteKindVisit(rows, now) for rows in by_channel.values()]
        queues = {id: rows[0][-1] for id, rows in by_channel.items()}
        timed = {id: batch.paces[name] for id, name in queues.items() if name in batch.paces}
        if timed:
            yield from self._share_times(visits, timed)
        return visits

    def _read_on(self, channel: SqliteClaimChannel, count: int, likely: int) -> Plan[None]:
        if not isinstance(channel, SqliteKindVisit) or not channel.strict:
            yield from super()._read_on(channel, count, likely)
        elif count and not channel.all_known:
            yield from self._read_head(channel)

    def _read_due(self, channel: SqliteClaimChannel, reach: int) -> Plan[tuple[list[Start], bool]]:
        if not isinstance(channel, SqliteKindVisit):
            return (yield from super()._read_due(channel, reach))
        all_known = True
        for lane in channel.lanes:
            known = SqliteDueReads(reach, channel.skips)
            for priority in (yield from self._priorities(channel.id, lane.bands, lane.kind)):
                if most := known.most():
                    params = (channel.id, lane.kind, priority, channel.now, most)
                    known.add((yield self._sql.statement("due_messages_of_kind", *params)))
            lane.known = known.starts
            all_known = all_known and known.all_known
        return channel.merged(), all_known

    def _read_head(self, visit: SqliteKindVisit) -> Plan[None]:
        """A channel that starts one message at a time: the next one, if it is of these kinds."""
        heads: list[Start] = []
        for priority in (yield from self._priorities(visit.id, visit.channel_bands)):
            heads += yield self._sql.statement("due_messages", visit.id, priority, visit.now, 1)  # type: ignore[arg-type]
        first = start_order(heads, 1, visit.channel_skips, itemgetter(0), itemgetter(1, 2))
        visit.learn([], 1, True)
        if not first:
            return
        ((kind, expires_at),) = yield self._sql.statement("kind_and_expiry", first[0][2])
        for lane in visit.lanes:
            if lane.kind == kind:
                lane.known = first
                visit.learn(first, 1, False)
                return
        visit.held, visit.held_until = True, expires_at

    def _lease_lanes(
        self, visits: Sequence[SqliteKindVisit], state: WriteState, until: int
    ) -> Plan[None]:
        last = [last for visit in visits for last in visit.last_of_lanes()]
        rows = [(*one, state.now) for one in last]
        yield self._sql.many("lease_kind", [(*row, state.fence, until) for row in rows])
        runs = [run for visit in visits for run in visit.runs()]
        if several := [run for run in runs if run[3] < run[4]]:
            yield self._sql.many("delete_run", several)
        if single := [run[:4] for run in runs if run[3] == run[4]]:
            yield self._sql.many("delete_waiting", single)
        yield self._sql.many("delete_claimed_kind", rows)

    def _update_visited(
        self, visits: Sequence[SqliteKindVisit], batch: ClaimBatch, state: WriteState
    ) -> Plan[None]:
        held = [visit for visit in visits if visit.held]
        served = [visit for visit in visits if not visit.held]
        lanes, emptied, starts, plain = [], [], [], []
        changes = CountChanges()
        for visit in served:
            rescheduled = not visit.plain
            for lane in visit.lanes:
                if visit.used_up(lane):
                    rescheduled = True
                    due = yield from self._lane_due(visit, lane)
                    emptied.append((*visit.lane_after(lane), lane.bands, due))
                else:
                    lanes.append(visit.lane_after(lane))
            count = len(visit.taken)
            if rescheduled:
                changes.add(visit.id, more=-count, leased=count)
            else:
                plain.append((visit.id, count))
            if count and (visit.rate is not None or visit.strict):
                starts.append(visit.starts_after())
        yield self._sql.many("update_emptied_lane", emptied)
        yield self._sql.many("update_served_lane", lanes)
        yield self._sql.many("update_starts", starts)
        yield self._sql.many("count_starts", plain)
        first = batch.turn + 1
        batch.turn += len(served)
        yield from self._rows.update_counts(changes, state._replace(turn=first, by_kind=True))
        rows = [(v.id, lane.kind, v.held_until, state.now) for v in held for lane in v.lanes]
        yield self._sql.many("hold_lane", rows)

    def _lane_due(self, visit: SqliteKindVisit, lane: SqliteLane) -> Plan[int | None]:
        """When the lane can start its next message; clears the bits of priorities that have no
        messages."""
        if lane.waiting == len(visit.taken_of(lane)):
            return None
        priorities = yield from self._priorities(visit.id, lane.bands, lane.kind)
        params = (visit.id, lane.kind, listed(priorities), visit.now)
        rows = yield self._sql.statement("next_due_of_kind", *params)
        dues = {priority: due for priority, due in rows if due is not None}
        lane.bands = bands_of(dues)
        return min(dues.values(), default=None)
