"""claim: what a worker takes next, with shared limits and pauses of kinds around it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from laneway.engines.fairness import ChannelId, Limited, LimitedClaims, LimitSteps, LimitWaits
from laneway.engines.kind_pauses import without_paused
from laneway.model import ClaimStatus
from laneway.plan import Plan, Taken

from .base import repeatable
from .claim.claim import MysqlClaim
from .claim.lanes import lane_of
from .settle.settle import MysqlSettle
from .shared_limits import MysqlSharedLimits


class MysqlClaims:
    def __init__(self, limits: MysqlSharedLimits, claim: MysqlClaim, leases: MysqlSettle) -> None:
        self._limits = limits
        self._claim = claim
        self._leases = leases
        self._limited = LimitedClaims(ahead=1)

    @repeatable
    def claim(
        self,
        queues: tuple[str, ...],
        limit: int,
        lease: timedelta,
        worker: str,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[Taken]:
        lanes = None if kinds is None else tuple(lane_of(kind.encode()) for kind in kinds)
        whose = (queues, lanes)
        held = False

        def claim() -> Plan[Taken]:
            if held:  # it may have to wait, and this transaction holds channels and limits
                return Taken([], ClaimStatus.BUSY, timedelta(0), None, None, limited=True)
            taken = yield from self._claim.claim(whose, limit, lease, worker)
            return (yield from without_paused(taken, self._leases.give_back))

        def take(counts: Mapping[ChannelId, int]) -> Plan[Taken]:
            taken = yield from self._claim.claim_out_of_turn(whose, counts, lease, worker)
            return (yield from without_paused(taken, self._leases.give_back))

        def start(among: Sequence[Limited]) -> Plan[tuple[Taken, LimitWaits]]:
            nonlocal held
            taken, waits = yield from self._limits.start_limited(queues, kinds, limit, among, take)
            held = waits.held
            return taken, waits

        steps = LimitSteps(claim, start, self._limits.admit, self._limits.limit_sweep)
        return (yield from self._limited.claim(queues, steps))

    def notify_channel(self) -> Plan[str | None]:
        """MySQL cannot notify clients, so workers poll."""
        yield from ()
        return None

    def sleep(
        self,
        queues: tuple[str, ...],
        worker: str,
        length: timedelta | None,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[None]:
        yield from ()
