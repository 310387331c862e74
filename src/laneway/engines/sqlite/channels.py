"""Channels: their policies, pausing and removing them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from laneway.engines.fairness import rate_limit
from laneway.engines.times import micros, moment
from laneway.limits import LimitChange
from laneway.model import Policy
from laneway.plan import Plan, Row

from .base import WriteState, listed
from .channel_rows import CountChanges, SqliteChannelRows

_FLAGS, _UNTIL, _THROTTLED = slice(5, 7), slice(7, 8), slice(8, 9)  # of a policy


class SqliteChannels(SqliteChannelRows):
    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        state = yield from self._begin_write(turns=len(policies))
        yield from self._write_policies(queue, policies, state)

    def _write_policies(
        self, queue: str, policies: Mapping[str, Policy], state: WriteState
    ) -> Plan[None]:
        ids = yield from self._ids(queue, list(policies), state)
        rows = yield self._statement("arrival_times", listed(ids.values()))
        tats: dict[int, int | None] = {row[0]: row[1] for row in rows}
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
        yield self._many("set_policy", limits)
        yield from self._reschedule(ids.values(), state)

    def limit(self, queue: str, channel: str, change: LimitChange) -> Plan[Policy]:
        """Reads the policy under the write lock, so that two changes at once both hold."""
        state = yield from self._begin_write(turns=1)
        rows = yield self._statement("policy", queue, channel, state.now)
        policy = change.applied(_policy(rows))
        yield from self._write_policies(queue, {channel: policy}, state)
        return policy

    def pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: timedelta | None = None
    ) -> Plan[None]:
        yield from self._pause(queue, channels, paused, micros(length), None)

    def throttle(self, queue: str, channel: str, length: timedelta) -> Plan[None]:
        state = yield from self._begin_write(turns=1)
        ids = yield from self._ids(queue, [channel], state)
        yield self._statement("throttle", ids[channel], state.now + micros(length))
        yield from self._reschedule(ids.values(), state)

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        """Also resumes a paused channel, so that it can drain."""
        yield from self._pause(queue, channels, False, None, True)

    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._read_outside("policy", queue, channel, self._now())
        return _policy(rows)

    def _pause(
        self,
        queue: str,
        channels: Sequence[str],
        paused: bool,
        length: int | None,
        closing: bool | None,
    ) -> Plan[None]:
        state = yield from self._begin_write(turns=len(channels))
        ids = yield from self._ids(queue, channels, state)
        until = state.now + length if paused and length is not None else None
        yield self._many("pause", [(id, paused, until, closing) for id in ids.values()])
        yield from self._reschedule(ids.values(), state)

    def _ids(self, queue: str, channels: Sequence[str], state: WriteState) -> Plan[dict[str, int]]:
        found = yield from self._channels([(queue, name) for name in channels], state.now)
        return {name: channel.id for (_, name), channel in found.items()}

    def _reschedule(self, ids: Any, state: WriteState) -> Plan[None]:
        """Gives each a turn, a wake-up time or neither, by its new policy."""
        changes = CountChanges()
        for id in ids:
            changes.add(id)
        yield from self._update_counts(changes, state)


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
