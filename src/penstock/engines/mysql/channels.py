"""Channels: their policies, pausing and removing them. Locks channel rows in id order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from penstock.model import Policy
from penstock.plan import Plan

from .names import pair_id
from .owning import Owning
from .repeating import repeatable
from .times import SECOND


class Channels(Owning):
    @repeatable
    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        """A limit set now holds from the next claim on: leases that were claimed without being
        charged are charged here."""
        name = queue.encode()
        lanes = [(name, channel.encode()) for channel in policies]
        yield from self._own_channels(lanes)
        clock = yield self._say("clock", self._now())
        rows = [
            (pair_id(*lane), *lane, *_limits(policy, int(clock[0][0])))
            for lane, policy in zip(lanes, policies.values(), strict=True)
        ]
        yield from self._say_rows("policies_set", rows)
        limited = [
            pair_id(*lane)
            for lane, policy in zip(lanes, policies.values(), strict=True)
            if policy.concurrency is not None
        ]
        if limited:
            yield from self._charge(limited)
        yield from self._wake_up(lanes)

    @repeatable
    def pause(self, queue: str, channels: Sequence[str], paused: bool) -> Plan[None]:
        yield from self._pause(queue, channels, paused)

    @repeatable
    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        """Takes no new messages; upkeep deletes the channel when the last one has ended. A paused
        channel is resumed to drain."""
        ids = yield from self._pause(queue, channels, False)
        yield self._say("remove", ids)

    @repeatable
    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._say("policy", pair_id(queue.encode(), channel.encode()))
        return policy_of(*rows[0]) if rows else Policy()

    def _pause(self, queue: str, channels: Sequence[str], paused: bool) -> Plan[list[bytes]]:
        lanes = [(queue.encode(), channel.encode()) for channel in channels]
        ids = yield from self._own_channels(lanes)
        yield self._say("pause", ids, paused)
        yield from self._wake_up(lanes)
        return ids

    def _charge(self, limited: Sequence[bytes]) -> Plan[None]:
        """Leases that somebody is writing to at this moment are charged too, and noted as strays
        for upkeep to settle. The channels are owned, so no new lease comes meanwhile."""
        rows = yield self._say("uncounted", limited)
        if not rows:
            return
        wanted = [(int(row[0]), int(row[1])) for row in rows]
        held = yield self._say("uncounted_held", wanted)
        ours = {int(row[0]) for row in held}
        if ours:
            yield self._say("leases_count", sorted(ours))
        late = [row for row in rows if int(row[0]) not in ours]
        if late:
            alive = yield self._say("leases_alive", [(row[0], row[1]) for row in late])
            still = {int(row[0]) for row in alive}
            late = [row for row in late if int(row[0]) in still]
        if late:
            yield from self._say_rows("strays_add", [tuple(row) for row in late])
        charges = Counter(bytes(row[2]) for row in (*held, *late))
        for id, count in charges.items():
            yield self._say("charge", count, id)

    def _wake_up(self, lanes: Sequence[tuple[bytes, bytes]]) -> Plan[None]:
        rows = yield self._say("clock", self._now())
        now = int(rows[0][0])
        yield from self._say_rows(
            "wakes", [(now, pair_id(*lane), now, 0, 0, 0, 0, False, *lane) for lane in set(lanes)]
        )


def _limits(policy: Policy, now: int) -> tuple[object, ...]:
    gated = None if policy.backlog is None else 1
    rate, burst, tat = policy.rate, policy.burst, None
    if rate is not None and burst is not None:
        # Of the starts under another rate, at most that the burst is used up is remembered.
        tat = now + ceil(burst / rate * SECOND)
    return policy.concurrency, rate, burst, policy.backlog, policy.weight, gated, tat


def policy_of(
    concurrency: int | None,
    rate: float | None,
    burst: int | None,
    backlog: int | None,
    weight: float,
    paused: int,
    closing: int,
) -> Policy:
    return Policy(concurrency, rate, burst, backlog, weight, bool(paused), bool(closing))
