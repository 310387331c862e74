"""Channels: their policies, pausing and removing them."""

from collections.abc import Mapping, Sequence

from penstock.model import Policy
from penstock.plan import Plan

from .base import Base


class Channels(Base):
    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        limits = list(policies.values())
        yield self._say_now(
            "set_policy",
            queue,
            list(policies),
            [p.concurrency for p in limits],
            [p.rate for p in limits],
            [p.burst for p in limits],
            [p.backlog for p in limits],
            [p.weight for p in limits],
        )

    def pause(self, queue: str, channels: Sequence[str], paused: bool) -> Plan[None]:
        yield self._say_now("pause", queue, list(channels), paused)

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        yield self._say_now("remove", queue, list(channels))

    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._say("policy", queue, channel)
        return Policy(*rows[0]) if rows else Policy()
