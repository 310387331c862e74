"""Laneway: durable, multi-tenant message queues in the SQL database you already run.

Names are loaded when they are first used; importing the package loads no driver. Errors are in
``laneway.errors``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .client.aio.message import AsyncMessage
    from .client.aio.queue import AsyncQueue
    from .client.shared.claim import Claim
    from .client.sync.message import Message
    from .client.sync.queue import Queue
    from .errors import LanewayError, LeaseLost
    from .event import Event, MessageEnd
    from .inspection import Finding
    from .migrate import install_sql, upgrade_sql
    from .model import (
        ChannelStats,
        ClaimStatus,
        DeadLetter,
        HistoryEntry,
        NewMessage,
        Policy,
        Published,
        QueueStats,
    )
    from .retry import Constant, Exponential, FailedAttempt, Linear, NoRetry, Retry
    from .schedule import Schedule
    from .topic import TopicCopy
    from .worker.binding import INJECTED
    from .worker.outcomes import Defer, Fail, Throttled
    from .worker.tasks.collection import Tasks
    from .worker.tasks.task import Task
    from .worker.worker import Worker

__all__ = [
    "INJECTED",
    "AsyncMessage",
    "AsyncQueue",
    "ChannelStats",
    "Claim",
    "ClaimStatus",
    "Constant",
    "DeadLetter",
    "Defer",
    "Event",
    "Exponential",
    "Fail",
    "FailedAttempt",
    "Finding",
    "HistoryEntry",
    "LanewayError",
    "LeaseLost",
    "Linear",
    "Message",
    "MessageEnd",
    "NewMessage",
    "NoRetry",
    "Policy",
    "Published",
    "Queue",
    "QueueStats",
    "Retry",
    "Schedule",
    "Task",
    "Tasks",
    "Throttled",
    "TopicCopy",
    "Worker",
    "__version__",
    "install_sql",
    "upgrade_sql",
]

_MODULES = {
    "client.aio.message": "AsyncMessage",
    "client.aio.queue": "AsyncQueue",
    "client.shared.claim": "Claim",
    "client.sync.message": "Message",
    "client.sync.queue": "Queue",
    "errors": "LanewayError LeaseLost",
    "event": "Event MessageEnd",
    "inspection": "Finding",
    "migrate": "install_sql upgrade_sql",
    "model": "ChannelStats ClaimStatus DeadLetter HistoryEntry NewMessage Policy Published "
    "QueueStats",
    "retry": "Constant Exponential FailedAttempt Linear NoRetry Retry",
    "schedule": "Schedule",
    "topic": "TopicCopy",
    "worker.binding": "INJECTED",
    "worker.outcomes": "Defer Fail Throttled",
    "worker.tasks.collection": "Tasks",
    "worker.tasks.task": "Task",
    "worker.worker": "Worker",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

_ELSEWHERE = {
    "client": "AsyncChannel AsyncDeadLetters AsyncEvents AsyncExecutor AsyncPublishedMessage "
    "AsyncSchedules AsyncTopic Channel DeadLetters Events Executor PublishedMessage Schedules "
    "Shards Topic",
    "errors": "BacklogFull ChannelClosed ConnectionUnavailable CountChanged DatabaseFailed "
    "DecodeError DriverMissing FlowMissing HandlerDied HandlerFailed InvalidCall InvalidInput "
    "InvalidName InvalidOption InvalidPayload InvalidSchedule InvalidTime MessageCancelled "
    "MessageDead MessageLapsed MessageUnknown NoResult NotAllowed NotEnded OutcomeUnknown "
    "PayloadTooLarge PublishRefused ResultMissing ScheduleMissing SchemaError SchemaMissing "
    "SchemaTooNew SchemaTooOld UnsupportedConnection",
    "limits": "Adapt Breaker",
    "inspection": "ChannelInfo ChannelPage HistoryPage MessageInfo MessagePage Repair Totals",
    "operations": "Minute WorkerInfo",
    "model": "KEEP Cancelled Settings Settled UpkeepReport",
    "schedule": "FireReport",
    "topic": "Subscription",
}
_ELSEWHERE_OF = {name: module for module, names in _ELSEWHERE.items() for name in names.split()}

_RENAMED = {
    "Answer": "ClaimStatus",
    "ChannelNumbers": "ChannelStats",
    "Copy": "TopicCopy",
    "Ending": "MessageEnd",
    "QueueNumbers": "QueueStats",
    "Tried": "FailedAttempt",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise _not_here(name)
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def _not_here(name: str) -> Exception:
    # ``from laneway import X`` replaces the text of an AttributeError by its own, but not that of
    # an ImportError.
    if module := _ELSEWHERE_OF.get(name):
        return ImportError(f"{name} is in laneway.{module}", name=__name__)
    if renamed := _RENAMED.get(name):
        return ImportError(f"{name} is now called {renamed}", name=__name__)
    return AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
