"""The engine: which object has which verbs, and what each of them holds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laneway.clock import Clock
from laneway.contract import Ability

from .base import PostgresqlSql
from .channels import PostgresqlChannels
from .claim import PostgresqlClaims
from .dead_letters import PostgresqlDeadLetters, PostgresqlOperations
from .diagnose import PostgresqlDiagnose
from .events import PostgresqlEvents
from .flows import PostgresqlFlows
from .inspect import PostgresqlInspect, PostgresqlStats
from .operate.control import (
    PostgresqlAudit,
    PostgresqlFairness,
    PostgresqlPauses,
    PostgresqlRunNow,
    PostgresqlWorkers,
)
from .operate.looks import PostgresqlLooks
from .publish import PostgresqlPublish, PostgresqlTopics
from .schedules import PostgresqlSchedules
from .schema import PostgresqlRepair
from .settle import PostgresqlSettle
from .shared_limits import PostgresqlSharedLimits
from .upkeep import PostgresqlUpkeep

if TYPE_CHECKING:
    from laneway.contract import Engine


class PostgresqlEngine:
    """Verbs on messages and channels are one statement each, and so their own transactions; redrive
    and discard are one a batch."""

    dialect = "postgresql"
    atomic = False
    lacks: Mapping[Ability, str] = {}

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        sql = PostgresqlSql(schema, clock)
        publish = PostgresqlPublish(sql)
        self.topics = topics = PostgresqlTopics(sql, publish)
        self.claims = PostgresqlClaims(sql)
        self.leases = leases = PostgresqlSettle(sql)
        self.channels = PostgresqlChannels(sql)
        self.limits = limits = PostgresqlSharedLimits(sql)
        self.dead_letters = dead_letters = PostgresqlDeadLetters(sql)
        self.schedules = PostgresqlSchedules(sql, publish, topics)
        self.workers = workers = PostgresqlWorkers(sql)
        self.flows = PostgresqlFlows(sql, workers, dead_letters)
        self.schema = schema_ = PostgresqlRepair(sql)
        self.events = PostgresqlEvents(sql)
        self.messages = PostgresqlMessages(publish, leases, workers, PostgresqlRunNow(sql))
        self.queues = PostgresqlQueues(PostgresqlPauses(sql), PostgresqlFairness(sql))
        self.operations = PostgresqlOperatorWork(PostgresqlOperations(sql), PostgresqlAudit(sql))
        inspect = PostgresqlInspect(sql)
        looks = PostgresqlLooks(sql)
        stats = PostgresqlStats(sql)
        self.inspection = PostgresqlInspection(inspect, looks, stats)
        diagnose = PostgresqlDiagnose(sql, schema_, inspect, workers, looks, limits)
        self.maintenance = PostgresqlMaintenance(PostgresqlUpkeep(sql), stats, diagnose)


class PostgresqlMessages:
    """Publishing, and what becomes of messages that wait."""

    def __init__(
        self,
        publish: PostgresqlPublish,
        settle: PostgresqlSettle,
        workers: PostgresqlWorkers,
        run_now: PostgresqlRunNow,
    ) -> None:
        self.publish, self.publish_bulk = publish.publish, publish.publish_bulk
        self.cancel, self.cancel_running = settle.cancel, workers.cancel_running
        self.run_now, self.once = run_now.run_now, settle.once


class PostgresqlQueues:
    """Pauses, and by what channels take turns."""

    def __init__(self, pauses: PostgresqlPauses, fairness: PostgresqlFairness) -> None:
        self.pause_queue, self.resume_queue = pauses.pause_queue, pauses.resume_queue
        self.pauses = pauses.pauses
        self.set_fairness, self.fairness = fairness.set_fairness, fairness.fairness
        self.time_ahead = fairness.time_ahead


class PostgresqlOperatorWork:
    """Operations in the background, and the audit."""

    def __init__(self, operations: PostgresqlOperations, audit: PostgresqlAudit) -> None:
        self.add_operation, self.step_operation = (
            operations.add_operation,
            operations.step_operation,
        )
        self.end_operation, self.operations = operations.end_operation, operations.operations
        self.add_audit, self.audit = audit.add_audit, audit.audit


class PostgresqlInspection:
    """All bounded reads."""

    def __init__(
        self, inspect: PostgresqlInspect, looks: PostgresqlLooks, stats: PostgresqlStats
    ) -> None:
        self.message, self.messages = inspect.message, inspect.messages
        self.payload, self.saved_state = inspect.payload, inspect.saved_state
        self.channels, self.channel_stats = looks.channels, looks.channel_stats
        self.queue_stats, self.minutes = looks.queue_stats, looks.minutes
        self.history, self.history_since = stats.history, inspect.history_since
        self.totals, self.clock = inspect.totals, inspect.clock


class PostgresqlMaintenance:
    """Upkeep, the settings, and diagnosis."""

    def __init__(
        self, upkeep: PostgresqlUpkeep, stats: PostgresqlStats, diagnose: PostgresqlDiagnose
    ) -> None:
        self.upkeep, self.diagnose = upkeep.upkeep, diagnose.diagnose
        self.settings, self.configure = stats.settings, stats.configure


if TYPE_CHECKING:
    _: type[Engine] = PostgresqlEngine
