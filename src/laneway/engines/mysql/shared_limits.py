"""Shared limits: what a claim reads and writes of them, and the verbs that set them.

Locks: a claim, which holds the channels of what it took, locks the limits' rows in the order of
their names, and waits for no channel after that. Lanes are guarded by their channels' locks; what
makes messages due skips channels that others hold.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from datetime import timedelta
from typing import Any

from laneway.engines.fairness import (
    ChannelId,
    Lane,
    Limited,
    LimitLane,
    rate_limit,
)
from laneway.engines.shared_limits import (
    COMING,
    Kinds,
    LimitPlans,
    LimitState,
    LimitWait,
    Passes,
    shown_limit,
)
from laneway.engines.times import SECOND, micros
from laneway.limits import EndedAttempt, LimitClock, LimitControl
from laneway.model import Return, Settled
from laneway.plan import Plan, Row
from laneway.shared_limits import LimitNote, PlainLimits, SharedLimit, SharedLimitChange, names_in

from .append import WakeRow
from .base import MysqlChannelLocks, MysqlSql, data, pair_id, repeatable, text
from .settle.end import ParkedMessage
from .settle.settle import MysqlCancel, MysqlSettle, WaitingMessage

_FORGOTTEN = 100
"""Sets of limits that one upkeep forgets: it locks each of their limits."""


class MysqlSharedLimits(LimitPlans):
    _limit_one_lock = True

    def __init__(
        self, sql: MysqlSql, leases: MysqlSettle, cancel: MysqlCancel, locks: MysqlChannelLocks
    ) -> None:
        self._sql = sql
        self._leases = leases
        self._cancel = cancel
        self._locks = locks
        self.plain_limits = PlainLimits()
        self._limit_queues_after = (b"", b"")

    def _limit_put_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        return self._leases.give_back(returns)

    @repeatable
    def set_shared_limit(self, name: str, change: SharedLimitChange) -> Plan[SharedLimit]:
        row = yield from self._lock_limit(name)
        now = yield from self._limit_now()
        control = yield from self._limit_control(name)
        _, rate, burst = change.applied(control.set_concurrency, *row[1:3])
        limit, tat = rate_limit(rate, burst), row[3]
        tat = None if limit is None or tat is None else min(tat, limit.latest(now))
        yield self._sql.statement("set_shared_limit", data(name), rate, burst, tat)
        control.set(change.concurrency, change.adapt, change.breaker)
        yield from self._limit_set_control(name, control)
        self.plain_limits.forget(name)
        return shown_limit(name, rate, burst, control, now)

    @repeatable
    def note_limits(self, notes: Sequence[LimitNote]) -> Plan[list[bool]]:
        wanted = [data(name) for name in sorted({note.name for note in notes})]
        rows = yield self._sql.statement("controlled_among", wanted)
        names = {text(row[0]) or "" for row in rows}
        groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for note in sorted(notes):
            if note.name in names:
                groups.setdefault((note.name, note.outcome), []).append((note.id, note.fence))
        for (name, outcome), pairs in groups.items():
            yield self._sql.statement("note_limits", pairs, data(name), outcome, self._sql.now())
        self.plain_limits.learn({note.name for note in notes} - names)
        return [note.name in names for note in notes]

    @repeatable
    def rest_shared_limit(self, name: str, length: timedelta) -> Plan[None]:
        yield from self._lock_limit(name)
        now = yield from self._limit_now()
        yield self._sql.statement("rest_shared_limit", data(name), now + micros(length))

    @repeatable
    def remove_shared_limit(self, name: str) -> Plan[bool]:
        if not (yield self._sql.statement("lock_limit", data(name))):
            return False
        yield self._sql.statement("remove_shared_limit", data(name))
        return True

    @repeatable
    def shared_limits(self) -> Plan[list[SharedLimit]]:
        now = yield from self._limit_now()
        depths: Counter[str] = Counter()
        for (limits,) in (yield self._sql.statement("all_limit_sets")):
            rows = yield self._sql.statement("limit_depth", bytes(limits))
            for name in names_in(text(limits) or ""):
                depths[name] += int(rows[0][0])
        rows = yield self._sql.statement("shared_limits")
        return [_shared_limit(row, depths, now) for row in rows]

    @repeatable
    def limited_channels(self, queue: str, channels: Sequence[str]) -> Plan[dict[str, str]]:
        ids = {pair_id(queue.encode(), name.encode()): name for name in channels}
        if not ids:
            return {}
        rows = yield self._sql.statement("channels_behind_limits", list(ids))
        return {ids[bytes(row[0])]: text(row[1]) or "" for row in rows}

    def _lock_limit(self, name: str) -> Plan[list[Any]]:
        """Adds it if it is not there."""
        rows = yield self._sql.statement("lock_limit", data(name))
        if not rows:
            yield self._sql.statement("add_limit", data(name))
            rows = yield self._sql.statement("lock_limit", data(name))
        return list(rows[0])

    def _limit_now(self) -> Plan[int]:
        rows = yield self._sql.statement("clock", self._sql.now())
        return int(rows[0][0])

    def _limit_lock(self, names: Sequence[str], now: int) -> Plan[None]:
        for name in names:
            row = yield from self._lock_limit(name)
            if row[6]:
                yield from self._end_runs(name)

    def _end_runs(self, name: str) -> Plan[None]:
        """What has ended behind a limit that is locked, and adapts or has a breaker."""
        runs = yield from self._runs(name)
        gone = {id: attempt for id, ended, attempt in runs if ended}
        if gone:
            yield self._sql.statement("delete_limit_runs", data(name), list(gone))
            left = [attempt.round for _, ended, attempt in runs if not ended]
            yield from self._limit_end(name, list(gone.values()), left)

    def _limit_control(self, name: str) -> Plan[LimitControl]:
        rows = yield self._sql.statement("limit_control", data(name))
        return _control(rows[0])

    def _limit_set_control(self, name: str, control: LimitControl) -> Plan[None]:
        columns = replace(control, recent=data(control.recent))  # type: ignore[arg-type]
        yield self._sql.statement("set_limit_control", data(name), *astuple(columns))

    def _limit_all_sets(self) -> Plan[list[str]]:
        rows = yield self._sql.statement("all_limit_sets")
        return [text(row[0]) or "" for row in rows]

    def _limit_look(
        self, names: Sequence[str], now: int, claimed: Sequence[int] | None = None
    ) -> Plan[dict[str, LimitState]]:
        coming = yield from self._coming(set(claimed or ()), now)
        states = {}
        for name in names:
            for concurrency, rate, burst, tat, rest_until, round, controlled in (
                yield self._sql.statement("look_limit", data(name))
            ):
                runs = yield from self._runs(name)
                ended = [id for id, gone, _ in runs if gone]
                if controlled and claimed is not None:
                    # What has ended since the limit was locked is left to whoever locks it next.
                    ended = []
                plain = (concurrency, rate, burst, tat, rest_until, round)
                states[name] = LimitState(name, *plain, len(runs) - len(ended), coming[name], ended)
        return states

    def _runs(self, name: str) -> Plan[list[tuple[int, bool, EndedAttempt]]]:
        """What runs behind a limit or has run: the message, and whether its lease is gone."""
        rows = yield self._sql.statement("limit_runs", data(name))
        return [(int(row[0]), bool(row[1]), EndedAttempt(*row[2:])) for row in rows]

    def _coming(self, ids: set[int], now: int) -> Plan[Counter[str]]:
        rows = yield self._sql.statement("limit_coming", now - COMING)
        counts: Counter[str] = Counter()
        for id, limits in rows:
            if int(id) not in ids:
                counts.update(names_in(text(limits) or ""))
        return counts

    def _limit_start(self, started: Sequence[Limited], states: Sequence[LimitState]) -> Plan[None]:
        rounds = {state.name: state.round for state in states}
        rows = [
            (data(name), one.id, one.fence, rounds[name])
            for one in started
            for name in names_in(one.limits)
        ]
        yield from self._sql.insert("add_limit_runs", rows)
        for state in states:
            if ended := sorted({*state.ended}.difference(one.id for one in started)):
                yield self._sql.statement("delete_limit_runs", data(state.name), ended)
            if state.rate is not None:
                yield self._sql.statement("set_limit_arrival", data(state.name), state.tat)
        yield self._sql.statement("delete_limit_waits", sorted(one.id for one in started))

    def _limit_waits(self, ids: Sequence[int]) -> Plan[list[LimitWait]]:
        rows = yield self._sql.statement("limit_waits", sorted(ids))
        return [LimitWait(int(id), bool(released), charge) for id, released, charge, _ in rows]

    def _limit_held(self, sets: Sequence[str]) -> Plan[list[str]]:
        passes = {}
        for limits in sets:
            passes[limits] = yield self._sql.statement("lowest_pass", data(limits))
        return [limits for limits, rows in passes.items() if rows]

    def _limit_passes(self, sets: Sequence[str]) -> Plan[dict[str, Passes]]:
        passes = {}
        for limits in sets:
            lowest = yield self._sql.statement("lowest_pass", data(limits))
            idle = yield self._sql.statement("highest_pass", data(limits))
            passes[limits] = Passes(
                *(float(rows[0][0]) if rows else None for rows in (lowest, idle))
            )
        return passes

    def _limit_lane(self, limits: str, id: int) -> Plan[LimitLane]:
        ((channel_id, queue, weight, passed, due),) = yield self._sql.statement(
            "limit_lane", data(limits), id
        )
        had = None if passed is None else float(passed)
        return LimitLane(bytes(channel_id), bytes(queue), float(weight), had, int(due))

    def _limit_charge(
        self, limits: str, lane: LimitLane, begins: float, charge: float, now: int
    ) -> Plan[None]:
        where = (data(limits), lane.channel_id, lane.queue)
        yield self._sql.statement("charge_limit_lane", *where, begins, charge, now)

    def _limit_clock(self, limits: str) -> Plan[LimitClock]:
        rows = yield self._sql.statement("limit_clock", data(limits))
        return LimitClock.read(text(rows[0][0]) if rows else None)

    def _limit_set_clock(self, limits: str, clock: LimitClock, now: int) -> Plan[None]:
        yield self._sql.statement("set_limit_clock", data(limits), data(clock.written()), now)

    def _limit_wait(
        self, waiting: Sequence[Limited], charges: Mapping[int, float], now: int
    ) -> Plan[None]:
        limits = {one.id: data(one.limits) or b"" for one in waiting}
        rows = yield self._sql.statement("limited_messages", sorted(limits))
        lanes: dict[tuple[bytes, bytes, bytes], float] = {}
        dues: dict[tuple[bytes, bytes, bytes], int] = {}
        for id, channel_id, queue, *_, due, published in rows:
            lane = (limits[int(id)], bytes(channel_id), bytes(queue))
            lanes[lane] = lanes.get(lane, 0.0) + charges.get(int(id), 0.0)
            since = max(int(due), int(published))
            dues[lane] = min(since, dues.get(lane, since))
        joins = yield from self._joins(sorted({one.limits for one in waiting}))
        for lane, charge in sorted(lanes.items()):
            passed = joins[text(lane[0]) or ""].at(dues[lane], now)
            yield self._sql.statement("add_limit_lane", *lane, passed, charge, now)
        for queue, names in sorted({(lane[2], lane[0]) for lane in lanes}):
            if not (yield self._sql.statement("limit_queue", queue, names)):
                yield self._sql.statement("add_limit_queue", queue, names)
        waits = [(int(r[0]), limits[int(r[0])], bytes(r[1]), bytes(r[3]), r[4], r[5]) for r in rows]
        yield from self._sql.insert("add_limit_waits", waits)

    def _limit_sets(self, queues: tuple[str, ...]) -> Plan[list[str]]:
        rows = yield self._sql.statement("limit_sets", [data(queue) for queue in queues])
        lowest = []
        for (limits,) in rows:
            for passed, due, id in (yield self._sql.statement("lowest_pass", bytes(limits))):
                lowest.append((float(passed), int(due or 0), int(id or 0), text(limits) or ""))
        return [limits for *_, limits in sorted(lowest)]

    def _limit_lanes(
        self, limits: str, queues: tuple[str, ...], kinds: Kinds, room: int, now: int
    ) -> Plan[list[Lane]]:
        params: list[Any] = [data(limits), [data(queue) for queue in queues], room, now]
        if kinds is None:
            rows = yield self._sql.statement("limit_lanes", *params)
        else:
            wanted = [data(kind) for kind in kinds]
            rows = yield self._sql.statement("limit_lanes_of_kinds", *params, wanted)
        lanes = [Lane(bytes(row[0]), float(row[1]), float(row[2]), row[3]) for row in rows]
        if not lanes:
            return []
        ids = [bytes(row[0]) for row in rows]
        ours = {
            bytes(row[0])
            for row in (yield from self._locks.lock_free_channels(ids, self._sql.now()))
        }
        return [lane for lane in lanes if lane.channel_id in ours]

    def _limit_next(self, limits: str, channel: ChannelId, kinds: Kinds, n: int) -> Plan[list[int]]:
        if kinds is None:
            rows = yield self._sql.statement("next_limited", data(limits), channel, n)
        else:
            wanted = [data(kind) for kind in kinds]
            rows = yield self._sql.statement(
                "next_limited_of_kinds", data(limits), channel, n, wanted
            )
        return [int(row[0]) for row in rows]

    def _limit_release(self, limits: str, lane: Lane, ids: Sequence[int], now: int) -> Plan[None]:
        charge = 1 / lane.weight
        if ids:
            yield self._sql.statement("release_limit_waits", sorted(ids), now, charge)
        had = len(ids) * charge
        yield self._sql.statement("move_limit_lane", data(limits), lane.channel_id, had, now)

    def _limit_make_due(self, ids: Sequence[int]) -> Plan[list[int]]:
        wanted = sorted(ids)
        dues = {
            int(row[0]): int(row[3]) for row in (yield self._sql.statement("limit_waits", wanted))
        }
        rows = yield self._sql.statement("waiting_messages", wanted, self._sql.now())
        waiting = [WaitingMessage(*row) for row in rows]
        later = {message.id: message for message in waiting if message.due > message.now}
        known = {message.id for message in waiting}
        if gone := [id for id in wanted if id not in known]:
            yield self._sql.statement("delete_limit_waits", gone)
        if not later:
            return sorted(known)
        yield from self._cancel.leave_lanes(list(later.values()))
        parked = [
            ParkedMessage(*row) for row in (yield self._sql.statement("lock_parked", sorted(later)))
        ]
        wakes: list[WakeRow] = []
        for message in parked:
            now = later[message.id].now
            due = min(dues[message.id], now)
            yield self._sql.statement("move_due", message.id, due)
            wakes += _wakes(message, due, now)
        if own := sorted(message.wake_id for message in parked if message.wake_id is not None):
            yield self._sql.statement("delete_own_wakes", own)
        yield from self._sql.insert("add_wakes", wakes)
        return sorted(known)

    def note_expired(self, ids: Sequence[int], now: int) -> Plan[None]:
        """The leases of these messages were taken back."""
        for (name,) in (yield self._sql.statement("controlled_limits")):
            rows = yield self._sql.statement("lock_expired_runs", sorted(ids), bytes(name))
            if mine := sorted(int(row[0]) for row in rows):
                yield self._sql.statement("note_expired_runs", mine, bytes(name), now)

    def forget_limits(self, now: int, limit: int) -> Plan[None]:
        """Lanes in which nothing waits, and what is known of messages that were made due a while
        ago. A set's limits are locked before its queue is forgotten, as who adds it does."""
        for name in [
            text(row[0]) or "" for row in (yield self._sql.statement("controlled_limits"))
        ]:
            # So that what is shown of it is true if nothing more is claimed.
            some = any(ended for _, ended, _ in (yield from self._runs(name)))
            if some and (yield self._sql.statement("lock_free_limit", data(name))):
                yield from self._end_runs(name)
        before = now - 60 * SECOND
        if old := (yield self._sql.statement("released_waits", before, limit)):
            yield self._sql.statement("delete_limit_waits", sorted(int(row[0]) for row in old))
        yield from self._forget_clocks(before, limit)
        yield from self._forget_queues(limit)
        # The last: whoever holds a limit may wait for a lane.
        rows = yield self._sql.statement("idle_limit_lanes", before, limit)
        lanes = sorted((bytes(row[0]), bytes(row[1]), bool(row[2])) for row in rows)
        if idle := [lane for *lane, over in lanes if over]:
            yield self._sql.statement("delete_limit_lanes", idle)
        if ahead := [lane for *lane, over in lanes if not over]:
            yield self._sql.statement("keep_limit_lanes", ahead, now)

    def _forget_clocks(self, before: int, limit: int) -> Plan[None]:
        """What is still needed comes last, so that every clock has its turn."""
        rows = yield self._sql.statement("old_limit_clocks", before, limit)
        if not rows:
            return
        old = sorted(bytes(row[0]) for row in rows)
        rows = yield self._sql.statement("lock_free_clocks", old, before)
        if idle := [bytes(row[0]) for row in rows if not row[1]]:
            yield self._sql.statement("delete_limit_clocks", idle)
        if needed := [bytes(row[0]) for row in rows if row[1]]:
            yield self._sql.statement("keep_limit_clocks", needed, before)

    def _forget_queues(self, limit: int) -> Plan[None]:
        """Sets of limits that nothing of a queue waits for; from where the last upkeep came to."""
        rows = yield self._sql.statement("limit_queues", *self._limit_queues_after, limit)
        looked = [(bytes(row[0]), bytes(row[1])) for row in rows]
        idle = [pair for pair, row in zip(looked, rows, strict=True) if not row[2]][:_FORGOTTEN]
        if len(idle) == _FORGOTTEN:
            self._limit_queues_after = idle[-1]
        else:
            self._limit_queues_after = looked[-1] if len(rows) == limit else (b"", b"")
        sets = [(queue, text(limits)) for queue, limits in idle]
        for name in sorted({name for _, limits in sets for name in names_in(limits)}):
            yield from self._lock_limit(name)
        for queue, limits in sets:
            if (yield self._sql.statement("idle_limit_queue", queue, data(limits))):
                yield self._sql.statement("delete_limit_queue", queue, data(limits))


def _control(columns: Sequence[Any]) -> LimitControl:
    control = LimitControl(*columns)
    return replace(control, recent=text(control.recent))


def _shared_limit(row: Row, depths: Counter[str], now: int) -> SharedLimit:
    name = text(row[0]) or ""
    rate, burst, running = row[1:4]
    return shown_limit(name, rate, burst, _control(row[4:]), now, int(running), depths[name])


def _wakes(m: ParkedMessage, due: int, now: int) -> list[WakeRow]:
    """One more where it is now. Its own wake, which counts it where it was, is deleted; if somebody
    has read that, one fewer just after its time."""
    names = m.queue, m.channel
    ahead = m.priority > 0 or due < now
    wakes: list[WakeRow] = [(now, m.channel_id, due, m.id, 1, 0, m.priority, ahead, *names)]
    if m.wake_id is None:
        wakes.append((m.due + 1, m.channel_id, m.due, m.id, -1, 0, m.priority, False, *names))
    return wakes
