"""Channels: their policies, pausing and removing them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.model import Policy
from penstock.plan import Plan

from .base import State, listed
from .moves import Moves, Moving
from .naming import Naming

_FLAGS = slice(5, 7)  # of a policy


class Channels(Naming, Moving):
    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        state = yield from self._begin(turns=len(policies))
        ids = yield from self._ids(queue, list(policies), state)
        rows = yield self._say("arrivals", listed(ids.values()))
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
        yield self._each("set_policy", limits)
        yield from self._place(ids.values(), state)

    def pause(self, queue: str, channels: Sequence[str], paused: bool) -> Plan[None]:
        yield from self._pause(queue, channels, paused, None)

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        """A paused channel is resumed to drain."""
        yield from self._pause(queue, channels, False, True)

    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._look("policy", queue, channel)
        return read_policy(rows[0]) if rows else Policy()

    def _pause(
        self, queue: str, channels: Sequence[str], paused: bool, closing: bool | None
    ) -> Plan[None]:
        state = yield from self._begin(turns=len(channels))
        ids = yield from self._ids(queue, channels, state)
        yield self._each("pause", [(id, paused, closing) for id in ids.values()])
        yield from self._place(ids.values(), state)

    def _ids(self, queue: str, channels: Sequence[str], state: State) -> Plan[dict[str, int]]:
        gates = yield from self._channels([(queue, name) for name in channels], state.now)
        return {name: gate.id for (_, name), gate in gates.items()}

    def _place(self, ids: Any, state: State) -> Plan[None]:
        """In the ring, asleep, or neither, by what holds now."""
        moves = Moves()
        for id in ids:
            moves.add(id)
        yield from self._move(moves, state)


def read_policy(row: Sequence[Any]) -> Policy:
    values: list[Any] = list(row)
    values[_FLAGS] = map(bool, values[_FLAGS])
    return Policy(*values)


def _arrival(policy: Policy, tat: int | None, now: int) -> tuple[int | None, int | None]:
    """What is remembered of the starts under a new rate: at most that its burst is used up."""
    if policy.rate is None or policy.burst is None or tat is None:
        return None, None
    tat = min(tat, now + math.ceil(policy.burst / policy.rate * 1e6))
    if policy.burst - max(0, tat - now) / 1e6 * policy.rate + 1e-9 >= 1:
        return tat, None
    return tat, tat - math.floor((policy.burst - 1) / policy.rate * 1e6)
