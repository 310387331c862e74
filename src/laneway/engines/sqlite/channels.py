"""Channels: rows found or created by name, their counts, lanes and policies."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from laneway.engines.fairness import rate_limit
from laneway.engines.times import micros, moment
from laneway.limits import LimitChange
from laneway.model import Policy
from laneway.plan import Plan, Row, as_dict

from .base import SqliteSql, WriteState, listed
from .claim.channel import band


class SqliteLanes:
    """Lanes: what waits in a channel, by kind, for claims of some kinds.

    Only queues that are claimed by kind have them. A verb that changes what waits tells of it here,
    before it updates the counts of its channels; that gives the lanes their turns."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    def now_waiting(self, ids: Iterable[int], state: WriteState) -> Plan[None]:
        """These messages wait, for the first time or again."""
        if state.by_kind:
            text = listed(ids)
            yield self._sql.statement("add_kind_waiting", text)
            yield self._sql.statement("add_to_lanes", text)

    def no_longer_waiting(self, ids: Iterable[int], state: WriteState) -> Plan[None]:
        """These messages are about to be claimed, moved or ended; their rows are unchanged yet."""
        if state.by_kind:
            text = listed(ids)
            yield self._sql.statement("take_from_lanes", text)
            yield self._sql.statement("delete_kind_waiting", text)

    def schedule_lanes(self, channels: Iterable[tuple[int, int]], now: int) -> Plan[None]:
        """Gives lanes a turn, a time to wake, or neither. ``channels``: ids, each with the turn for
        those that become ready."""
        rows = list(channels)
        yield self._sql.many("delete_empty_lanes", [(id,) for id, _ in rows])
        yield self._sql.many("schedule_lanes", [(*row, now) for row in rows])


Names = tuple[str, str]
"""A queue and a channel."""


class WaitingRow(NamedTuple):
    """A row of waiting_messages: where a message that has no lease stands."""

    channel_id: int
    priority: int
    due: int
    id: int


class FoundChannel(NamedTuple):
    """What publish must know of a channel; ``room`` is None where there is no limit."""

    id: int
    closing: bool
    room: int | None


CountRow = tuple[int, int, int, int, int | None, int, int]
"""Parameters of update_channel_counts."""


class CountChanges:
    """What a verb changes in the counts of its channels, by channel id: waiting messages added,
    leases added, their priorities (as bits), their earliest due."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, int, int, int | None]] = {}

    def add(
        self,
        channel_id: int,
        *,
        more: int = 0,
        leased: int = 0,
        priority: int = 0,
        due: int | None = None,
    ) -> None:
        old_more, old_leased, bands, first = self._rows.get(channel_id, (0, 0, 0, None))
        if due is not None:
            bands |= band(priority)
            first = due if first is None else min(first, due)
        self._rows[channel_id] = (old_more + more, old_leased + leased, bands, first)

    def rows(self, first_turn: int, now: int) -> list[CountRow]:
        """Parameters of update_channel_counts. Channels that become ready get their turns in the
        order in which they were added."""
        return [
            (channel_id, *change, first_turn + number, now)
            for number, (channel_id, change) in enumerate(self._rows.items())
        ]


class SqliteChannelRows:
    """Rows of channels: found or created by name, and their counts."""

    def __init__(self, sql: SqliteSql, lanes: SqliteLanes) -> None:
        self._sql = sql
        self._lanes = lanes

    def channels(self, names: Sequence[Names], now: int) -> Plan[dict[Names, FoundChannel]]:
        """Creates those that do not exist."""
        found = yield from self.known(names)
        missing = [name for name in names if name not in found]
        if missing:
            yield self._sql.many("add_channel", [(*name, now) for name in missing])
            found |= yield from self.known(missing)
        return found

    def known(self, names: Sequence[Names]) -> Plan[dict[Names, FoundChannel]]:
        by_queue: dict[str, list[str]] = {}
        for queue, name in names:
            by_queue.setdefault(queue, []).append(name)
        found: dict[Names, FoundChannel] = {}
        for queue, channels in by_queue.items():
            rows = yield self._sql.statement("find_channels", queue, listed(channels))
            found |= {(queue, name): FoundChannel(*rest) for name, *rest in rows}
        return found

    def update_counts(self, changes: CountChanges, state: WriteState) -> Plan[None]:
        rows = changes.rows(state.turn, state.now)
        yield self._sql.many("update_channel_counts", rows)
        if state.by_kind:
            yield from self._lanes.schedule_lanes([(row[0], row[5]) for row in rows], state.now)


_FLAGS, _UNTIL, _THROTTLED = slice(5, 7), slice(7, 8), slice(8, 9)  # of a policy


class SqliteChannels:
    """Channels: their policies, pausing and removing them."""

    def __init__(self, sql: SqliteSql, rows: SqliteChannelRows) -> None:
        self._sql = sql
        self._rows = rows

    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        state = yield from self._sql.begin_write(turns=len(policies))
        yield from self._write_policies(queue, policies, state)

    def _write_policies(
        self, queue: str, policies: Mapping[str, Policy], state: WriteState
    ) -> Plan[None]:
        ids = yield from self._ids(queue, list(policies), state)
        rows = yield self._sql.statement("arrival_times", listed(ids.values()))
        tats: dict[int, int | None] = as_dict(rows)
        limits = [
            (
                id,
                p.concurrency,
                p.rate,
                p.burst,
                p.backlog,
                p.weight,
                *_arrival(p, tats[id], state.now),
            )
            for id, p in ((ids[name], policy) for name, policy in policies.items())
        ]
        yield self._sql.many("set_policy", limits)
        yield from self._reschedule(ids.values(), state)

    def limit(self, queue: str, channel: str, change: LimitChange) -> Plan[Policy]:
        """Reads the policy under the write lock, so that two changes at once both hold."""
        state = yield from self._sql.begin_write(turns=1)
        rows = yield self._sql.statement("policy", queue, channel, state.now)
        policy = change.applied(_policy(rows))
        yield from self._write_policies(queue, {channel: policy}, state)
        return policy

    def pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: timedelta | None = None
    ) -> Plan[None]:
        yield from self._pause(queue, channels, paused, micros(length), None)

    def throttle(self, queue: str, channel: str, length: timedelta) -> Plan[None]:
        state = yield from self._sql.begin_write(turns=1)
        ids = yield from self._ids(queue, [channel], state)
        yield self._sql.statement("throttle", ids[channel], state.now + micros(length))
        yield from self._reschedule(ids.values(), state)

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        """Also resumes a paused channel, so that it can drain."""
        yield from self._pause(queue, channels, False, None, True)

    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._sql.read_outside("policy", queue, channel, self._sql.now())
        return _policy(rows)

    def _pause(
        self,
        queue: str,
        channels: Sequence[str],
        paused: bool,
        length: int | None,
        closing: bool | None,
    ) -> Plan[None]:
        state = yield from self._sql.begin_write(turns=len(channels))
        ids = yield from self._ids(queue, channels, state)
        until = state.now + length if paused and length is not None else None
        yield self._sql.many("pause", [(id, paused, until, closing) for id in ids.values()])
        yield from self._reschedule(ids.values(), state)

    def _ids(self, queue: str, channels: Sequence[str], state: WriteState) -> Plan[dict[str, int]]:
        found = yield from self._rows.channels([(queue, name) for name in channels], state.now)
        return {name: channel.id for (_, name), channel in found.items()}

    def _reschedule(self, ids: Any, state: WriteState) -> Plan[None]:
        """Gives each a turn, a wake-up time or neither, by its new policy."""
        changes = CountChanges()
        for id in ids:
            changes.add(id)
        yield from self._rows.update_counts(changes, state)


def read_policy(row: Sequence[Any]) -> Policy:
    values: list[Any] = list(row)
    values[_FLAGS] = map(bool, values[_FLAGS])
    values[_UNTIL] = map(moment, values[_UNTIL])
    values[_THROTTLED] = map(bool, values[_THROTTLED])
    return Policy(*values)


def _policy(rows: Sequence[Row]) -> Policy:
    return read_policy(rows[0]) if rows else Policy()


def _arrival(policy: Policy, tat: int | None, now: int) -> tuple[int | None, int | None]:
    """``tat`` and ``open_at`` under a new rate. Of the starts under the old rate, at most one
    used-up burst is remembered."""
    limit = rate_limit(policy.rate, policy.burst)
    if limit is None or tat is None:
        return None, None
    tat = min(tat, limit.latest(now))
    return tat, limit.open_at(tat, now)
