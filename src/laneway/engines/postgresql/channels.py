"""Channels: their policies, pausing and removing them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from laneway.errors import InvalidOption
from laneway.limits import LimitChange
from laneway.model import KEEP, Policy
from laneway.plan import Plan

from .base import PostgresqlSql


class PostgresqlChannels:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def set_policies(self, queue: str, policies: Mapping[str, Policy]) -> Plan[None]:
        limits = list(policies.values())
        yield self._sql.statement_now(
            "set_policy",
            queue,
            list(policies),
            [p.concurrency for p in limits],
            [p.rate for p in limits],
            [p.burst for p in limits],
            [p.backlog for p in limits],
            [p.weight for p in limits],
        )

    def limit(self, queue: str, channel: str, change: LimitChange) -> Plan[Policy]:
        values = (None if value is KEEP else value for value in change)
        rows = yield self._sql.statement_now("limit", queue, channel, change.named, *values)
        if not rows:
            raise InvalidOption(
                f"the burst does not go with the rate of channel {channel!r}: give a rate too"
            )
        return Policy(*rows[0])

    def pause(
        self, queue: str, channels: Sequence[str], paused: bool, length: timedelta | None = None
    ) -> Plan[None]:
        yield self._sql.statement_now("pause", queue, list(channels), paused, length)

    def throttle(self, queue: str, channel: str, length: timedelta) -> Plan[None]:
        yield self._sql.statement_now("throttle", queue, channel, length)

    def remove(self, queue: str, channels: Sequence[str]) -> Plan[None]:
        yield self._sql.statement_now("remove", queue, list(channels))

    def policy(self, queue: str, channel: str) -> Plan[Policy]:
        rows = yield self._sql.statement("policy", queue, channel)
        return Policy(*rows[0]) if rows else Policy()
