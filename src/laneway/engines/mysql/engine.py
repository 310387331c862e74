"""The engine: which object has which verbs, and what each of them holds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laneway.clock import Clock
from laneway.contract import Ability

from .append import MysqlAppend
from .base import MysqlChannelLocks, MysqlSql
from .channels import MysqlChannels
from .claim.channel import MysqlTimes
from .claim.claim import MysqlClaim
from .claim.scan import MysqlScan
from .claim.serve import MysqlLaneServe
from .claims import MysqlClaims
from .dead_letters import MysqlDeadLetters, MysqlOperations
from .diagnose import MysqlDiagnose, MysqlService
from .events import MysqlEventOutbox, MysqlEvents
from .flows import MysqlFlows
from .flows_release import MysqlNodeEnds
from .inspect import MysqlInspect, MysqlMessageList, MysqlStats
from .operate.channel_list import MysqlChannelList
from .operate.control import (
    MysqlAudit,
    MysqlControlCleanup,
    MysqlFairness,
    MysqlPauses,
    MysqlRunNow,
    MysqlWorkers,
)
from .operate.looks import MysqlLooks, MysqlOldest, MysqlQueueList
from .operate.minutes import MysqlFold, MysqlMinutes, MysqlPublishedFold
from .publish import MysqlKeys, MysqlPublish, MysqlPublishState, MysqlReplace, MysqlTopics
from .schedules import MysqlSchedules
from .schema import MysqlRepair
from .settle.end import MysqlBehind, MysqlRequeue, MysqlSettleEnd
from .settle.lease import MysqlOnce, MysqlResults
from .settle.settle import MysqlCancel, MysqlSettle
from .shared_limits import MysqlSharedLimits
from .upkeep import MysqlCleanup, MysqlExpire, MysqlHistoryOrder, MysqlUpkeep

if TYPE_CHECKING:
    from laneway.contract import Engine


class MysqlEngine:
    """Every verb is a few statements in one transaction."""

    dialect = "mysql"
    atomic = True
    lacks: Mapping[Ability, str] = {
        "handlers' transactions": "the worker has none to give on MySQL: begin your own and "
        "complete the message on its connection",
    }

    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        sql = MysqlSql(schema, clock)
        # What several groups of verbs write.
        outbox = MysqlEventOutbox(sql)
        locks = MysqlChannelLocks(sql)
        append = MysqlAppend(sql)
        results = MysqlResults(sql)
        once = MysqlOnce(sql)
        behind = MysqlBehind(sql)
        nodes = MysqlNodeEnds(sql, append, outbox)
        ends = MysqlSettleEnd(sql, behind)
        requeue = MysqlRequeue(sql, outbox, ends, nodes, behind)
        cancel = MysqlCancel(sql, locks, outbox, results, ends, nodes, behind)
        # Publishing.
        state = MysqlPublishState(sql)
        replace = MysqlReplace(sql, locks, state, append, outbox)
        keys = MysqlKeys(sql)
        publish = MysqlPublish(state, append, replace, keys, outbox)
        # Claiming.
        scan = MysqlScan(sql)
        times = MysqlTimes(sql)
        serve = MysqlLaneServe(sql, times)
        claim = MysqlClaim(sql, scan, locks, outbox, serve, times)
        # What bounded reads and upkeep share.
        looks = MysqlLooks(sql)
        oldest = MysqlOldest(sql, looks)
        history_order = MysqlHistoryOrder(sql)

        self.channels = MysqlChannels(sql, locks)
        self.topics = topics = MysqlTopics(sql, publish)
        self.leases = leases = MysqlSettle(sql, ends, outbox, nodes, requeue, results)
        self.limits = limits = MysqlSharedLimits(sql, leases, cancel, locks)
        self.claims = MysqlClaims(limits, claim, leases)
        self.dead_letters = dead_letters = MysqlDeadLetters(sql, outbox, nodes, ends)
        self.schedules = MysqlSchedules(sql, publish, topics)
        self.workers = workers = MysqlWorkers(sql, cancel)
        self.flows = MysqlFlows(
            sql, state, append, locks, outbox, leases, nodes, workers, dead_letters
        )
        self.schema = schema_ = MysqlRepair(sql)
        run_now = MysqlRunNow(sql, locks, cancel)
        self.messages = MysqlMessages(publish, cancel, workers, run_now, once)
        self.queues = MysqlQueues(MysqlPauses(sql), MysqlFairness(sql))
        self.operations = MysqlOperatorWork(MysqlOperations(sql, dead_letters), MysqlAudit(sql))
        self.events = MysqlResultEvents(MysqlEvents(sql), results)
        inspect = MysqlInspect(sql, history_order)
        minutes = MysqlMinutes(sql)
        stats = MysqlStats(sql)
        self.inspection = MysqlInspection(
            inspect,
            MysqlMessageList(sql),
            MysqlQueueList(sql, looks),
            MysqlChannelList(sql, looks),
            minutes,
            stats,
        )
        fold = MysqlFold(sql, MysqlPublishedFold(sql), oldest)
        expire = MysqlExpire(sql, outbox, limits, requeue, ends, locks, cancel)
        cleanup = MysqlCleanup(sql, ends)
        control = MysqlControlCleanup(sql)
        upkeep = MysqlUpkeep(
            sql,
            fold,
            expire,
            cleanup,
            once,
            control,
            workers,
            results,
            leases,
            nodes,
            limits,
            history_order,
        )
        diagnose = MysqlDiagnose(
            sql, schema_, inspect, workers, MysqlService(sql, looks), minutes, limits
        )
        self.maintenance = MysqlMaintenance(upkeep, stats, diagnose)


class MysqlMessages:
    """Publishing, and what becomes of messages that wait."""

    def __init__(
        self,
        publish: MysqlPublish,
        cancel: MysqlCancel,
        workers: MysqlWorkers,
        run_now: MysqlRunNow,
        once: MysqlOnce,
    ) -> None:
        self.publish, self.publish_bulk = publish.publish, publish.publish_bulk
        self.cancel, self.cancel_running = cancel.cancel, workers.cancel_running
        self.run_now, self.once = run_now.run_now, once.once


class MysqlQueues:
    """Pauses, and by what channels take turns."""

    def __init__(self, pauses: MysqlPauses, fairness: MysqlFairness) -> None:
        self.pause_queue, self.resume_queue = pauses.pause_queue, pauses.resume_queue
        self.pauses = pauses.pauses
        self.set_fairness, self.fairness = fairness.set_fairness, fairness.fairness
        self.time_ahead = fairness.time_ahead


class MysqlOperatorWork:
    """Operations in the background, and the audit."""

    def __init__(self, operations: MysqlOperations, audit: MysqlAudit) -> None:
        self.add_operation, self.step_operation = (
            operations.add_operation,
            operations.step_operation,
        )
        self.end_operation, self.operations = operations.end_operation, operations.operations
        self.add_audit, self.audit = audit.add_audit, audit.audit


class MysqlResultEvents:
    """Mailboxes, and how messages ended."""

    def __init__(self, events: MysqlEvents, results: MysqlResults) -> None:
        self.listen, self.hear, self.unlisten = events.listen, events.hear, events.unlisten
        self.endings, self.results = events.endings, results.results


class MysqlInspection:
    """All bounded reads."""

    def __init__(
        self,
        inspect: MysqlInspect,
        messages: MysqlMessageList,
        queues: MysqlQueueList,
        channels: MysqlChannelList,
        minutes: MysqlMinutes,
        stats: MysqlStats,
    ) -> None:
        self.message, self.messages = inspect.message, messages.messages
        self.payload, self.saved_state = inspect.payload, inspect.saved_state
        self.channels, self.channel_stats = channels.channels, channels.channel_stats
        self.queue_stats, self.minutes = queues.queue_stats, minutes.minutes
        self.history, self.history_since = stats.history, inspect.history_since
        self.totals, self.clock = inspect.totals, inspect.clock


class MysqlMaintenance:
    """Upkeep, the settings, and diagnosis."""

    def __init__(self, upkeep: MysqlUpkeep, stats: MysqlStats, diagnose: MysqlDiagnose) -> None:
        self.upkeep, self.diagnose = upkeep.upkeep, diagnose.diagnose
        self.settings, self.configure = stats.settings, stats.configure


if TYPE_CHECKING:
    _: type[Engine] = MysqlEngine
