"""Shared limits: what a claim reads and writes of them, and the verbs that set them.

Every plan here runs under the write lock, so nothing else has to be locked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import timedelta

from laneway.engines.fairness import (
    ChannelId,
    Lane,
    Limited,
    LimitLane,
    rate_limit,
)
from laneway.engines.shared_limits import (
    HOLD,
    Kinds,
    LimitPlans,
    LimitState,
    LimitWait,
    Passes,
    shown_limit,
)
from laneway.engines.times import micros
from laneway.limits import EndedAttempt, LimitClock, LimitControl
from laneway.model import Return, Settled
from laneway.plan import Plan, as_dict
from laneway.shared_limits import (
    LimitNote,
    PlainLimits,
    SharedLimit,
    SharedLimitChange,
    limits_of,
    names_in,
)

from .base import SqliteSql, listed
from .channels import CountChanges, SqliteChannelRows, SqliteLanes, WaitingRow
from .settle.settle import SqliteSettle


class SqliteSharedLimits(LimitPlans):
    def __init__(
        self, sql: SqliteSql, leases: SqliteSettle, lanes: SqliteLanes, rows: SqliteChannelRows
    ) -> None:
        self._sql = sql
        self._leases = leases
        self._lanes = lanes
        self._rows = rows
        self.plain_limits = PlainLimits()

    def set_shared_limit(self, name: str, change: SharedLimitChange) -> Plan[SharedLimit]:
        state = yield from self._sql.begin_write()
        yield self._sql.statement("add_limits", listed([name]), state.now)
        ((rate, burst, tat),) = yield self._sql.statement("shared_limit", name)
        control = yield from self._limit_control(name)
        _, rate, burst = change.applied(control.set_concurrency, rate, burst)
        limit = rate_limit(rate, burst)
        tat = None if limit is None or tat is None else min(tat, limit.latest(state.now))
        yield self._sql.statement("set_shared_limit", name, rate, burst, tat)
        control.set(change.concurrency, change.adapt, change.breaker)
        yield from self._limit_set_control(name, control)
        self.plain_limits.forget(name)
        return shown_limit(name, rate, burst, control, state.now)

    def note_limits(self, notes: Sequence[LimitNote]) -> Plan[list[bool]]:
        wanted = listed({note.name for note in notes})
        names = {row[0] for row in (yield self._sql.read_outside("controlled_limits", wanted))}
        if mine := [tuple(note) for note in notes if note.name in names]:
            state = yield from self._sql.begin_write()
            yield self._sql.many("note_limit", [(*note, state.now) for note in mine])
        self.plain_limits.learn({note.name for note in notes} - names)
        return [note.name in names for note in notes]

    def rest_shared_limit(self, name: str, length: timedelta) -> Plan[None]:
        state = yield from self._sql.begin_write()
        yield self._sql.statement("add_limits", listed([name]), state.now)
        yield self._sql.statement("rest_shared_limit", name, state.now + micros(length))

    def remove_shared_limit(self, name: str) -> Plan[bool]:
        yield from self._sql.begin_write()
        return bool((yield self._sql.statement("remove_shared_limit", name)))

    def shared_limits(self) -> Plan[list[SharedLimit]]:
        rows = yield self._sql.read_outside("shared_limits")
        now = self._sql.now()
        return [
            shown_limit(name, rate, burst, LimitControl(*control), now, running, waiting)
            for name, rate, burst, running, waiting, *control in rows
        ]

    def limited_channels(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, str]]:
        rows = yield self._sql.read_outside("channels_behind_limits", queue, listed(channels))
        return as_dict(rows)

    def _limit_put_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        return self._leases.give_back(returns)

    def _limit_now(self) -> Plan[int]:
        yield from ()
        return self._sql.now()

    def _limit_begin(self) -> Plan[None]:
        yield from self._sql.begin_write()

    def _limit_lock(self, names: Sequence[str], now: int) -> Plan[None]:
        yield self._sql.statement("add_limits", listed(names), now)
        yield from self._end_limit_leases(names)

    def _end_limit_leases(self, names: Sequence[str]) -> Plan[None]:
        ended = yield self._sql.statement("delete_ended_limit_leases", listed(names))
        if not ended:
            return
        rows = yield self._sql.statement("controlled_limits", listed({row[0] for row in ended}))
        for (name,) in rows:
            gone = [EndedAttempt(*row[1:]) for row in ended if row[0] == name]
            left = [row[0] for row in (yield self._sql.statement("limit_rounds", name))]
            yield from self._limit_end(name, gone, left)

    def _limit_control(self, name: str) -> Plan[LimitControl]:
        return LimitControl(*(yield self._sql.statement("limit_control", name))[0])

    def _limit_set_control(self, name: str, control: LimitControl) -> Plan[None]:
        yield self._sql.statement("set_limit_control", name, *astuple(control))

    def _limit_all_sets(self) -> Plan[list[str]]:
        return [row[0] for row in (yield self._sql.statement("all_limit_sets"))]

    def _limit_look(
        self, names: Sequence[str], now: int, claimed: Sequence[int] | None = None
    ) -> Plan[dict[str, LimitState]]:
        read = self._sql.read_outside if claimed is None else self._sql.statement
        rows = yield read("limit_states", listed(names), now, listed(claimed or ()))
        return {row[0]: LimitState(*row) for row in rows}

    def _limit_start(self, started: Sequence[Limited], states: Sequence[LimitState]) -> Plan[None]:
        rounds = {state.name: state.round for state in states}
        rows = [
            (name, one.id, one.fence, rounds[name])
            for one in started
            for name in names_in(one.limits)
        ]
        yield self._sql.many("add_limit_lease", rows)
        rated = [(state.name, state.tat) for state in states if state.rate is not None]
        if rated:
            yield self._sql.many("set_limit_arrival", rated)
        yield self._sql.statement("delete_limit_waits", listed(one.id for one in started))

    def _limit_waits(self, ids: Sequence[int]) -> Plan[list[LimitWait]]:
        rows = yield self._sql.statement("limit_waits", listed(ids))
        return [LimitWait(id, bool(released), charge) for id, released, charge in rows]

    def _limit_held(self, sets: Sequence[str]) -> Plan[list[str]]:
        return [row[0] for row in (yield self._sql.statement("held_limits", listed(sets)))]

    def _limit_passes(self, sets: Sequence[str]) -> Plan[dict[str, Passes]]:
        rows = yield self._sql.statement("limit_passes", listed(sets))
        return {limits: Passes(lowest, idle) for limits, lowest, idle in rows}

    def _limit_lane(self, limits: str, id: int) -> Plan[LimitLane]:
        return LimitLane(*(yield self._sql.statement("limit_lane", limits, id))[0])

    def _limit_charge(
        self, limits: str, lane: LimitLane, begins: float, charge: float, now: int
    ) -> Plan[None]:
        where = (limits, lane.channel_id, lane.queue)
        yield self._sql.statement("charge_limit_lane", *where, begins, charge, now)

    def _limit_clock(self, limits: str) -> Plan[LimitClock]:
        rows = yield self._sql.statement("limit_clock", limits)
        return LimitClock.read(rows[0][0] if rows else None)

    def _limit_set_clock(self, limits: str, clock: LimitClock, now: int) -> Plan[None]:
        yield self._sql.statement("set_limit_clock", limits, clock.written(), now)

    def _limit_wait(
        self, waiting: Sequence[Limited], charges: Mapping[int, float], now: int
    ) -> Plan[None]:
        joins = yield from self._joins(sorted({one.limits for one in waiting}))
        rows = yield self._sql.statement("limited_dues", listed(one.id for one in waiting))
        dues: dict[int, int] = as_dict(rows)
        lanes = [
            (o.limits, o.id, charges.get(o.id, 0.0), joins[o.limits].at(dues[o.id], now), now)
            for o in waiting
        ]
        pairs = [(one.limits, one.id) for one in waiting]
        yield self._sql.many("add_limit_lane", lanes)
        yield self._sql.many("add_limit_queue", pairs)
        yield self._sql.many("add_limit_wait", pairs)

    def limit_sweep(self, waiting: Sequence[Limited]) -> Plan[None]:
        state = yield from self._sql.begin_write()
        ids = listed(one.id for one in waiting)
        rows = yield self._sql.statement("behind_limited", ids, state.now)
        sets = {one.limits for one in waiting}
        places = [(WaitingRow(*place), limits_of(headers)) for *place, headers in rows]
        found = {place.id: (place, limits) for place, limits in places if limits in sets}
        if not found:
            return
        state = yield from self._sql.begin_write(turns=len(found))
        swept = [Limited(id, 0, str(limits)) for id, (_, limits) in found.items()]
        yield from self._limit_wait(swept, {}, state.now)
        yield self._sql.many("delete_waiting", [row for row, _ in found.values()])
        yield from self._lanes.no_longer_waiting(found, state)
        later = {id: state.now + HOLD + number for number, id in enumerate(found)}
        yield self._sql.many("move_due", list(later.items()))
        yield self._sql.statement("add_waiting_again", listed(found))
        yield from self._lanes.now_waiting(found, state)
        changes = CountChanges()
        for id, (row, _) in found.items():
            changes.add(row.channel_id, due=later[id])
        yield from self._rows.update_counts(changes, state)

    def _limit_sets(self, queues: tuple[str, ...]) -> Plan[list[str]]:
        rows = yield self._sql.read_outside("limit_sets", listed(queues))
        return [row[0] for row in rows]

    def _limit_lanes(
        self, limits: str, queues: tuple[str, ...], kinds: Kinds, room: int, now: int
    ) -> Plan[list[Lane]]:
        text = None if kinds is None else listed(kinds)
        rows = yield self._sql.statement("limit_lanes", limits, listed(queues), text, room, now)
        return [Lane(*row) for row in rows]

    def _limit_next(self, limits: str, channel: ChannelId, kinds: Kinds, n: int) -> Plan[list[int]]:
        text = None if kinds is None else listed(kinds)
        rows = yield self._sql.statement("next_limited", limits, channel, text, n)
        return [row[0] for row in rows]

    def _limit_release(self, limits: str, lane: Lane, ids: Sequence[int], now: int) -> Plan[None]:
        charge = 1 / lane.weight
        if ids:
            yield self._sql.statement("release_limit_waits", listed(ids), now, charge)
        yield self._sql.statement(
            "move_limit_lane", limits, lane.channel_id, len(ids) * charge, now
        )

    def _limit_make_due(self, ids: Sequence[int]) -> Plan[list[int]]:
        state = yield from self._sql.begin_write(turns=len(ids))
        rows = yield self._sql.statement("limit_dues", listed(ids), state.now)
        dues: dict[int, int] = as_dict(rows)
        if gone := [id for id in ids if id not in dues]:
            yield self._sql.statement("delete_limit_waits", listed(gone))
        rows = yield self._sql.statement("waiting_messages", listed(dues))
        waiting = [WaitingRow(*row) for row in rows]
        later = [row for row in waiting if row.due > state.now]
        due = [row.id for row in waiting]
        if not later:
            return due
        moved = [row.id for row in later]
        yield self._sql.many("delete_waiting", later)
        yield from self._lanes.no_longer_waiting(moved, state)
        yield self._sql.many("move_due", [(id, dues[id]) for id in moved])
        yield self._sql.statement("add_waiting_again", listed(moved))
        yield from self._lanes.now_waiting(moved, state)
        changes = CountChanges()
        for channel_id, priority, _, id in later:
            changes.add(channel_id, priority=priority, due=dues[id])
        yield from self._rows.update_counts(changes, state)
        return due

    def forget_limits(self, now: int, limit: int) -> Plan[None]:
        if names := [row[0] for row in (yield self._sql.statement("ended_limits"))]:
            yield from self._end_limit_leases(names)
        yield self._sql.statement("forget_released", now, limit)
        yield self._sql.statement("forget_limit_lanes", now, limit)
        yield self._sql.statement("forget_limit_clocks", now, limit)
        yield self._sql.statement("forget_limit_queues", limit)
