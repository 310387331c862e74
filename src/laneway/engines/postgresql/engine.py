"""The engine: all groups of verbs in one object."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laneway.contract import Ability

from .base import Clock
from .channels import PostgresqlChannels
from .claim import PostgresqlClaim
from .dead_letters import PostgresqlOperations
from .diagnose import PostgresqlDiagnose
from .events import PostgresqlEvents, PostgresqlSleep
from .flows import PostgresqlFlows
from .inspect import PostgresqlInspect, PostgresqlStats
from .operate.control import PostgresqlAudit, PostgresqlFairness, PostgresqlPauses, PostgresqlRunNow
from .operate.looks import PostgresqlLooks
from .schedules import PostgresqlSchedules
from .settle import PostgresqlSettle

if TYPE_CHECKING:
    from laneway.contract import Engine


class PostgresqlVerbs(
    PostgresqlFlows,
    PostgresqlSchedules,
    PostgresqlClaim,
    PostgresqlSettle,
    PostgresqlSleep,
    PostgresqlEvents,
    PostgresqlChannels,
    PostgresqlAudit,
    PostgresqlFairness,
    PostgresqlPauses,
    PostgresqlOperations,
    PostgresqlRunNow,
    PostgresqlStats,
    PostgresqlLooks,
    PostgresqlInspect,
    PostgresqlDiagnose,
):
    """All verbs in one object."""


class PostgresqlEngine:
    """Verbs on messages and channels are one statement each, and so their own transactions; redrive
    and discard are one a batch."""

    dialect = "postgresql"
    atomic = False
    lacks: Mapping[Ability, str] = {}

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        verbs = PostgresqlVerbs(schema, clock)
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
    _: type[Engine] = PostgresqlEngine
