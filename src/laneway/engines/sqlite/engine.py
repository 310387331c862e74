"""The engine: which object has which verbs, and what each of them holds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laneway.clock import Clock
from laneway.contract import Ability

from .base import SqliteSql
from .channels import SqliteChannelRows, SqliteChannels, SqliteLanes
from .claim.kinds import SqliteKindClaim
from .claims import SqliteClaims
from .dead_letters import SqliteDeadLetters, SqliteOperations
from .diagnose import SqliteDiagnose
from .events import SqliteEventOutbox, SqliteEvents
from .flows import SqliteFlows
from .inspect import SqliteInspect, SqliteMessageList, SqliteStats
from .operate.control import SqliteAudit, SqliteFairness, SqlitePauses, SqliteRunNow, SqliteWorkers
from .operate.counts import SqliteCounts, SqliteKindCounts
from .operate.looks import SqliteChannelList, SqliteLooks
from .operate.minutes import SqliteMinutes
from .publish import SqlitePublish, SqliteReplace, SqliteTopics
from .schedules import SqliteSchedules
from .schema import SqliteRepair
from .settle.end import SqliteNodeEnds, SqliteSettleEnd
from .settle.settle import SqliteSettle
from .shared_limits import SqliteSharedLimits
from .upkeep import SqliteUpkeep

if TYPE_CHECKING:
    from laneway.contract import Engine


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
        sql = SqliteSql(schema, clock)
        # What several groups of verbs write.
        outbox = SqliteEventOutbox(sql)
        lanes = SqliteLanes(sql)
        rows = SqliteChannelRows(sql, lanes)
        nodes = SqliteNodeEnds(sql, rows, lanes, outbox)
        ends = SqliteSettleEnd(sql, lanes, outbox, rows, nodes)
        replace = SqliteReplace(sql, rows, outbox, lanes)
        publish = SqlitePublish(sql, rows, replace, lanes, outbox)
        claim = SqliteKindClaim(sql, rows, lanes, outbox)
        # What bounded reads and upkeep share.
        looks = SqliteLooks(sql)
        counts = SqliteCounts(sql, looks)
        kind_counts = SqliteKindCounts(sql)
        minutes = SqliteMinutes(sql, looks, kind_counts)

        self.channels = SqliteChannels(sql, rows)
        self.topics = topics = SqliteTopics(sql, publish)
        self.leases = leases = SqliteSettle(sql, rows, ends, nodes, outbox)
        self.limits = limits = SqliteSharedLimits(sql, leases, lanes, rows)
        self.claims = SqliteClaims(sql, limits, leases, claim)
        self.dead_letters = dead_letters = SqliteDeadLetters(sql, rows, lanes, outbox, nodes, ends)
        self.schedules = SqliteSchedules(sql, publish, topics)
        self.workers = workers = SqliteWorkers(sql, leases)
        self.flows = SqliteFlows(sql, nodes, rows, workers, dead_letters)
        self.schema = schema_ = SqliteRepair(sql)
        self.events = SqliteEvents(sql)
        run_now = SqliteRunNow(sql, lanes, rows)
        self.messages = SqliteMessages(publish, leases, workers, run_now)
        self.queues = SqliteQueues(SqlitePauses(sql), SqliteFairness(sql))
        self.operations = SqliteOperatorWork(SqliteOperations(sql, dead_letters), SqliteAudit(sql))
        inspect = SqliteInspect(sql)
        stats = SqliteStats(sql)
        messages = SqliteMessageList(sql, looks)
        channels = SqliteChannelList(sql, looks)
        self.inspection = SqliteInspection(inspect, messages, looks, channels, minutes, stats)
        upkeep = SqliteUpkeep(sql, kind_counts, minutes, counts, ends, workers, nodes, limits)
        diagnose = SqliteDiagnose(sql, schema_, inspect, workers, minutes, limits)
        self.maintenance = SqliteMaintenance(upkeep, stats, diagnose)


class SqliteMessages:
    """Publishing, and what becomes of messages that wait."""

    def __init__(
        self,
        publish: SqlitePublish,
        settle: SqliteSettle,
        workers: SqliteWorkers,
        run_now: SqliteRunNow,
    ) -> None:
        self.publish, self.publish_bulk = publish.publish, publish.publish_bulk
        self.cancel, self.cancel_running = settle.cancel, workers.cancel_running
        self.run_now, self.once = run_now.run_now, settle.once


class SqliteQueues:
    """Pauses, and by what channels take turns."""

    def __init__(self, pauses: SqlitePauses, fairness: SqliteFairness) -> None:
        self.pause_queue, self.resume_queue = pauses.pause_queue, pauses.resume_queue
        self.pauses = pauses.pauses
        self.set_fairness, self.fairness = fairness.set_fairness, fairness.fairness
        self.time_ahead = fairness.time_ahead


class SqliteOperatorWork:
    """Operations in the background, and the audit."""

    def __init__(self, operations: SqliteOperations, audit: SqliteAudit) -> None:
        self.add_operation, self.step_operation = (
            operations.add_operation,
            operations.step_operation,
        )
        self.end_operation, self.operations = operations.end_operation, operations.operations
        self.add_audit, self.audit = audit.add_audit, audit.audit


class SqliteInspection:
    """All bounded reads."""

    def __init__(
        self,
        inspect: SqliteInspect,
        messages: SqliteMessageList,
        queues: SqliteLooks,
        channels: SqliteChannelList,
        minutes: SqliteMinutes,
        stats: SqliteStats,
    ) -> None:
        self.message, self.messages = inspect.message, messages.messages
        self.payload, self.saved_state = inspect.payload, inspect.saved_state
        self.channels, self.channel_stats = channels.channels, channels.channel_stats
        self.queue_stats, self.minutes = queues.queue_stats, minutes.minutes
        self.history, self.history_since = stats.history, inspect.history_since
        self.totals, self.clock = inspect.totals, inspect.clock


class SqliteMaintenance:
    """Upkeep, the settings, and diagnosis."""

    def __init__(self, upkeep: SqliteUpkeep, stats: SqliteStats, diagnose: SqliteDiagnose) -> None:
        self.upkeep, self.diagnose = upkeep.upkeep, diagnose.diagnose
        self.settings, self.configure = stats.settings, stats.configure


if TYPE_CHECKING:
    _: type[Engine] = SqliteEngine
