"""The engine: all groups of verbs in one object."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from laneway.contract import Ability
from laneway.engines.fairness import ChannelId, Limited, LimitSteps, LimitWaits
from laneway.engines.kind_pauses import without_paused
from laneway.model import ClaimStatus, Return, Settled
from laneway.plan import Plan, Taken

from .base import Clock, repeatable
from .channels import MysqlChannels
from .claim.claim import MysqlClaim
from .claim.lanes import lane_of
from .dead_letters import MysqlDeadLetters, MysqlOperations
from .diagnose import MysqlDiagnose
from .events import MysqlEvents
from .flows import MysqlFlows
from .inspect import MysqlInspect, MysqlMessageList, MysqlStats
from .operate.channel_list import MysqlChannelList
from .operate.control import MysqlAudit, MysqlFairness, MysqlPauses, MysqlRunNow
from .operate.looks import MysqlQueueList
from .operate.minutes import MysqlMinutes
from .schedules import MysqlSchedules
from .settle.settle import MysqlSettle
from .shared_limits import MysqlSharedLimits
from .upkeep import MysqlUpkeep

if TYPE_CHECKING:
    from laneway.contract import Engine


class MysqlVerbs(
    MysqlFlows,
    MysqlSchedules,
    MysqlClaim,
    MysqlSettle,
    MysqlSharedLimits,
    MysqlUpkeep,
    MysqlChannels,
    MysqlAudit,
    MysqlFairness,
    MysqlPauses,
    MysqlOperations,
    MysqlRunNow,
    MysqlDeadLetters,
    MysqlStats,
    MysqlInspect,
    MysqlQueueList,
    MysqlChannelList,
    MysqlMessageList,
    MysqlMinutes,
    MysqlDiagnose,
    MysqlEvents,
):
    """All verbs in one object."""

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

    def _limit_put_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        return self.give_back(returns)

    def _note_expired(self, ids: Sequence[int], now: int) -> Plan[None]:
        return MysqlSharedLimits._note_expired(self, ids, now)

    def _forget_limits(self, now: int, limit: int) -> Plan[None]:
        return MysqlSharedLimits._forget_limits(self, now, limit)

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
            taken = yield from self._claim(whose, limit, lease, worker)
            return (yield from without_paused(taken, self.give_back))

        def take(counts: Mapping[ChannelId, int]) -> Plan[Taken]:
            taken = yield from self._claim_out_of_turn(whose, counts, lease, worker)
            return (yield from without_paused(taken, self.give_back))

        def start(among: Sequence[Limited]) -> Plan[tuple[Taken, LimitWaits]]:
            nonlocal held
            taken, waits = yield from self._start_limited(queues, kinds, limit, among, take)
            held = waits.held
            return taken, waits

        steps = LimitSteps(claim, start, self._admit, self._limit_sweep)
        return (yield from self._limited.claim(queues, steps))


class MysqlEngine:
    """Every verb is a few statements in one transaction."""

    dialect = "mysql"
    atomic = True
    lacks: Mapping[Ability, str] = {
        "handlers' transactions": "the worker has none to give on MySQL: begin your own and "
        "complete the message on its connection",
    }

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        verbs = MysqlVerbs(schema, clock)
        self.messages = verbs
        self.topics = verbs
        self.claims = verbs
        self.leases = verbs
        self.channels = verbs
        self.queues = verbs
        self.limits = verbs
        self.dead_letters = verbs
        self.operations = verbs
        self.schedules = verbs
        self.flows = verbs
        self.workers = verbs
        self.events = verbs
        self.inspection = verbs
        self.maintenance = verbs
        self.schema = verbs


if TYPE_CHECKING:
    _: type[Engine] = MysqlEngine
