"""The SQLite engine: all groups of verbs in one class."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from laneway.contract import Ability
from laneway.engines.fairness import ChannelId, Limited, LimitSteps, LimitWaits
from laneway.engines.kind_pauses import without_paused
from laneway.plan import Plan, Taken

from .base import Clock
from .channels import SqliteChannels
from .claim.kinds import SqliteKindClaim
from .dead_letters import SqliteOperations
from .diagnose import SqliteDiagnose
from .events import SqliteEvents, SqliteSleep
from .flows import SqliteFlows
from .inspect import SqliteInspect
from .operate.control import SqliteAudit, SqliteFairness, SqlitePauses, SqliteRunNow
from .schedules import SqliteSchedules
from .shared_limits import SqliteSharedLimits
from .upkeep import SqliteUpkeep

if TYPE_CHECKING:
    from laneway.contract import Engine


class SqliteVerbs(
    SqliteSharedLimits,
    SqliteFlows,
    SqliteSchedules,
    SqliteKindClaim,
    SqliteUpkeep,
    SqliteChannels,
    SqliteAudit,
    SqliteFairness,
    SqlitePauses,
    SqliteOperations,
    SqliteRunNow,
    SqliteInspect,
    SqliteSleep,
    SqliteEvents,
    SqliteDiagnose,
):
    """All verbs in one object."""

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
                taken = yield from self._claim(queues, limit, lease, worker)
            else:
                taken = yield from self._claim_kinds(queues, limit, lease, worker, kinds)
            return (yield from without_paused(taken, self.give_back))

        def take(counts: Mapping[ChannelId, int]) -> Plan[Taken]:
            if kinds is None:
                taken = yield from self._claim_out_of_turn(queues, counts, lease, worker)
            else:
                taken = yield from self._claim_kinds_out_of_turn(
                    queues, counts, lease, worker, kinds
                )
            return (yield from without_paused(taken, self.give_back))

        def start(among: Sequence[Limited]) -> Plan[tuple[Taken, LimitWaits]]:
            return self._start_limited(queues, kinds, limit, among, take)

        steps = LimitSteps(claim, start, self._admit, self._limit_sweep)
        return (yield from self._limited.claim(queues, steps))


class SqliteEngine:
    """A verb is several statements, so it needs a transaction."""

    dialect = "sqlite"
    atomic = True
    lacks: Mapping[Ability, str] = {
        "open transactions": "SQLite has one writer at a time: all others wait for it to commit",
        "handlers' transactions": "one that is open while a handler works keeps all others from "
        "writing: begin your own when the work is done, and complete the message on its connection",
    }

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        verbs = SqliteVerbs(schema, clock)
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
    _: type[Engine] = SqliteEngine
