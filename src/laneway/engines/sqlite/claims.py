"""claim: what a worker takes next, with shared limits and pauses of kinds around it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from laneway.engines.fairness import ChannelId, Limited, LimitedClaims, LimitSteps, LimitWaits
from laneway.engines.kind_pauses import without_paused
from laneway.plan import Plan, Taken

from .base import SqliteSql
from .claim.kinds import SqliteKindClaim
from .settle.settle import SqliteSettle
from .shared_limits import SqliteSharedLimits


class SqliteClaims:
    def __init__(
        self,
        sql: SqliteSql,
        limits: SqliteSharedLimits,
        leases: SqliteSettle,
        claim: SqliteKindClaim,
    ) -> None:
        self._sql = sql
        self._limits = limits
        self._leases = leases
        self._claim = claim
        self._limited = LimitedClaims()

    def claim(
        self,
        queues: tuple[str, ...],
        limit: int,
        lease: timedelta,
        worker: str,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[Taken]:
        def claim() -> Plan[Taken]:
            if kinds is None:
                taken = yield from self._claim.claim(queues, limit, lease, worker)
            else:
                taken = yield from self._claim.claim_kinds(queues, limit, lease, worker, kinds)
            return (yield from without_paused(taken, self._leases.give_back))

        def take(counts: Mapping[ChannelId, int]) -> Plan[Taken]:
            if kinds is None:
                taken = yield from self._claim.claim_out_of_turn(queues, counts, lease, worker)
            else:
                taken = yield from self._claim.claim_kinds_out_of_turn(
                    queues, counts, lease, worker, kinds
                )
            return (yield from without_paused(taken, self._leases.give_back))

        def start(among: Sequence[Limited]) -> Plan[tuple[Taken, LimitWaits]]:
            return self._limits.start_limited(queues, kinds, limit, among, take)

        steps = LimitSteps(claim, start, self._limits.admit, self._limits.limit_sweep)
        return (yield from self._limited.claim(queues, steps))

    def notify_channel(self) -> Plan[str | None]:
        """None: there is no channel to listen to."""
        yield self._sql.read_outside("settings")
        return None

    def sleep(
        self,
        queues: tuple[str, ...],
        worker: str,
        length: timedelta | None,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[None]:
        yield self._sql.read_outside("settings")
