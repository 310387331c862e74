"""Channels: their policies, pausing and removing them. Locks channel rows in id order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from laneway.engines.fairness import rate_limit
from laneway.engines.times import micros, moment
from laneway.limits import LimitChange
from laneway.model import Policy
from laneway.plan import Plan

from .base import MysqlChannelLocks, MysqlSql, pair_id, repeatable


class MysqlChannels:
    def __init__(self, sql: MysqlSql, locks: MysqlChannelLocks) -> None:
        self._sql = sql
        self._locks = locks

    @repeatable
    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        """A new limit takes effect with the next claim: leases that were claimed without being
        charged to a limit are charged here."""
        channels = [(queue.encode(), channel.encode()) for channel in policies]
        yield from self._locks.lock_channels(channels)
        yield from self._write_policies(channels, list(policies.values()))

    @repeatable
    def limit(self, queue: str, channel: str, change: LimitChange) -> Plan[Policy]:
        pair = queue.encode(), channel.encode()
        yield from self._locks.lock_channels([pair])
        rows = yield self._sql.statement("locked_policy", pair_id(*pair), self._sql.now())
        policy = change.applied(policy_of(*rows[0]))
        yield from self._write_policies([pair], [policy])
        return policy

    def _write_policies(
        self, channels: Sequence[tuple[bytes, bytes]], policies: Sequence[Policy]
    ) -> Plan[None]:
        clock = yield self._sql.statement("clock", self._sql.now())
        rows = [
            (pair_id(*channel), *channel, *_limits(policy, int(clock[0][0])))
            for channel, policy in zip(channels, policies, strict=True)
        ]
        yield from self._sql.insert("set_policy", rows)
        limited = [
            pair_id(*channel)
            for channel, policy in zip(channels, policies, strict=True)
            if policy.concurrency is not None
        ]
        if limited:
            yield from self._charge_leases(limited)
        yield from self._wake_channels(channels)

    @repeatable
    def pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: timedelta | None = None
    ) -> Plan[None]:
        yield from self._pause(queue, channels, paused, micros(length))

    @repeatable
    def throttle(self, queue: str, channel: str, length: timedelta) -> Plan[None]:
        pair = queue.encode(), channel.encode()
        yield from self._locks.lock_channels([pair])
        rows = yield self._sql.statement("clock", self._sql.now())
        until = int(rows[0][0]) + micros(length)
        yield self._sql.statement("throttle", pair_id(*pair), until)
        yield from self._wake_channels([pair])
        yield from self._wake_channels([pair], until)

    @repeatable
    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        """The channels refuse new messages; upkeep deletes each when its last message has ended. A
        paused channel is resumed, so that it can drain."""
        ids = yield from self._pause(queue, channels, False, None)
        yield self._sql.statement("remove", ids)

    @repeatable
    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._sql.statement(
            "policy", pair_id(queue.encode(), channel.encode()), self._sql.now()
        )
        return policy_of(*rows[0]) if rows else Policy()

    def _pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: int | None
    ) -> Plan[list[bytes]]:
        """A pause for a time leaves wakes for its end, at which a claim visits the channels."""
        names = [(queue.encode(), channel.encode()) for channel in channels]
        ids = yield from self._locks.lock_channels(names)
        rows = yield self._sql.statement("clock", self._sql.now())
        until = int(rows[0][0]) + length if paused and length is not None else None
        yield self._sql.statement("pause", ids, paused, until)
        yield from self._wake_channels(names)
        if until is not None:
            yield from self._wake_channels(names, until)
        return ids

    def _charge_leases(self, limited: Sequence[bytes]) -> Plan[None]:
        """Leases that somebody else is writing to are charged too, and noted as strays, which
        upkeep settles. The channels are locked, so no new lease is added meanwhile."""
        rows = yield self._sql.statement("uncharged_leases", limited)
        if not rows:
            return
        wanted = [(int(id), int(fence)) for id, fence, *_ in rows]
        locked = yield self._sql.statement("lock_uncharged_leases", wanted)
        ours = {int(row[0]) for row in locked}
        if ours:
            yield self._sql.statement("mark_leases_charged", sorted(ours))
        strays = [row for row in rows if int(row[0]) not in ours]
        if strays:
            pairs = [(id, fence) for id, fence, *_ in strays]
            existing = yield self._sql.statement("existing_uncharged_leases", pairs)
            ids = {int(row[0]) for row in existing}
            strays = [row for row in strays if int(row[0]) in ids]
        if strays:
            yield from self._sql.insert("add_stray_leases", [tuple(row) for row in strays])
        for id, count in Counter(bytes(c) for _, _, c, *_ in (*locked, *strays)).items():
            yield self._sql.statement("charge_channel", count, id)

    def _wake_channels(
        self, channels: Sequence[tuple[bytes, bytes]], at: int | None = None
    ) -> Plan[None]:
        """Lets the next claim, or the first one from a time on, look at the channels again."""
        now = int((yield self._sql.statement("clock", self._sql.now()))[0][0])
        at = now if at is None else at
        wakes = [(at, pair_id(*c), now, 0, 0, 0, 0, False, *c) for c in set(channels)]
        yield from self._sql.insert("add_wakes", wakes)


def _limits(policy: Policy, now: int) -> tuple[object, ...]:
    gated = None if policy.backlog is None else 1
    limit = rate_limit(policy.rate, policy.burst)
    # Of the starts under the old rate, at most one used-up burst is remembered.
    tat = None if limit is None else limit.latest(now)
    limits = policy.concurrency, policy.rate, policy.burst, policy.backlog, policy.weight
    return (*limits, gated, tat)


def policy_of(
    concurrency: int | None,
    rate: float | None,
    burst: int | None,
    backlog: int | None,
    weight: float,
    paused: int,
    closing: int,
    paused_until: int | None,
    throttled: int,
) -> Policy:
    limits = (concurrency, rate, burst, backlog, weight)
    until = moment(paused_until) if paused else None
    return Policy(*limits, bool(paused), bool(closing), until, bool(paused and throttled))
