"""Penstock: durable multi-tenant message queues inside PostgreSQL.

Public names load what they need when they are first used; importing the package loads no driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .client.async_channel import AsyncChannel
    from .client.async_dead_letters import AsyncDeadLetters
    from .client.async_events import AsyncEvents
    from .client.async_message import AsyncMessage
    from .client.async_queue import AsyncQueue
    from .client.async_schedules import AsyncSchedules
    from .client.async_topic import AsyncTopic
    from .client.claim import Claim
    from .client.sync_channel import Channel
    from .client.sync_dead_letters import DeadLetters
    from .client.sync_events import Events
    from .client.sync_message import Message
    from .client.sync_queue import Queue
    from .client.sync_schedules import Schedules
    from .client.sync_topic import Topic
    from .drivers.protocols import AsyncExecutor, Executor
    from .errors import (
        BacklogFull,
        ChannelClosed,
        ConnectionUnavailable,
        DatabaseFailed,
        DecodeError,
        DriverMissing,
        InvalidInput,
        InvalidName,
        InvalidOption,
        InvalidPayload,
        InvalidSchedule,
        InvalidTime,
        LeaseLost,
        NotEnded,
        PayloadTooLarge,
        PenstockError,
        PublishRefused,
        ScheduleMissing,
        SchemaError,
        SchemaMissing,
        SchemaTooNew,
        SchemaTooOld,
        UnsupportedConnection,
    )
    from .event import Ending, Event
    from .insight import ChannelInfo, Finding, HistoryPage, MessageInfo, Totals
    from .migrate import install_sql, upgrade_sql
    from .model import (
        KEEP,
        Answer,
        Cancelled,
        ChannelNumbers,
        DeadLetter,
        HistoryEntry,
        NewMessage,
        Policy,
        Published,
        QueueNumbers,
        Settings,
        Settled,
        UpkeepReport,
    )
    from .retry import Constant, Exponential, Linear, NoRetry, Retry, Tried
    from .schedule import FireReport, Schedule
    from .topic import Copy, Subscription
    from .worker.outcomes import Defer, Fail
    from .worker.worker import Worker

_HOMES = {
    "client.async_channel": ["AsyncChannel"],
    "client.async_dead_letters": ["AsyncDeadLetters"],
    "client.async_events": ["AsyncEvents"],
    "client.async_message": ["AsyncMessage"],
    "client.async_queue": ["AsyncQueue"],
    "client.async_schedules": ["AsyncSchedules"],
    "client.async_topic": ["AsyncTopic"],
    "client.claim": ["Claim"],
    "client.sync_channel": ["Channel"],
    "client.sync_dead_letters": ["DeadLetters"],
    "client.sync_events": ["Events"],
    "client.sync_message": ["Message"],
    "client.sync_queue": ["Queue"],
    "client.sync_schedules": ["Schedules"],
    "client.sync_topic": ["Topic"],
    "drivers.protocols": ["AsyncExecutor", "Executor"],
    "errors": [
        "BacklogFull",
        "ChannelClosed",
        "ConnectionUnavailable",
        "DatabaseFailed",
        "DecodeError",
        "DriverMissing",
        "InvalidInput",
        "InvalidName",
        "InvalidOption",
        "InvalidPayload",
        "InvalidSchedule",
        "InvalidTime",
        "LeaseLost",
        "NotEnded",
        "PayloadTooLarge",
        "PenstockError",
        "PublishRefused",
        "ScheduleMissing",
        "SchemaError",
        "SchemaMissing",
        "SchemaTooNew",
        "SchemaTooOld",
        "UnsupportedConnection",
    ],
    "insight": ["ChannelInfo", "Finding", "HistoryPage", "MessageInfo", "Totals"],
    "retry": ["Constant", "Exponential", "Linear", "NoRetry", "Retry", "Tried"],
    "worker.outcomes": ["Defer", "Fail"],
    "worker.worker": ["Worker"],
    "migrate": ["install_sql", "upgrade_sql"],
    "model": [
        "KEEP",
        "Answer",
        "Cancelled",
        "ChannelNumbers",
        "DeadLetter",
        "HistoryEntry",
        "NewMessage",
        "Policy",
        "Published",
        "QueueNumbers",
        "Settings",
        "Settled",
        "UpkeepReport",
    ],
    "event": ["Ending", "Event"],
    "schedule": ["FireReport", "Schedule"],
    "topic": ["Copy", "Subscription"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "KEEP",
    "Answer",
    "AsyncChannel",
    "AsyncDeadLetters",
    "AsyncEvents",
    "AsyncExecutor",
    "AsyncMessage",
    "AsyncQueue",
    "AsyncSchedules",
    "AsyncTopic",
    "BacklogFull",
    "Cancelled",
    "Channel",
    "ChannelClosed",
    "ChannelInfo",
    "ChannelNumbers",
    "Claim",
    "ConnectionUnavailable",
    "Constant",
    "Copy",
    "DatabaseFailed",
    "DeadLetter",
    "DeadLetters",
    "DecodeError",
    "Defer",
    "DriverMissing",
    "Ending",
    "Event",
    "Events",
    "Executor",
    "Exponential",
    "Fail",
    "Finding",
    "FireReport",
    "HistoryEntry",
    "HistoryPage",
    "InvalidInput",
    "InvalidName",
    "InvalidOption",
    "InvalidPayload",
    "InvalidSchedule",
    "InvalidTime",
    "LeaseLost",
    "Linear",
    "Message",
    "MessageInfo",
    "NewMessage",
    "NoRetry",
    "NotEnded",
    "PayloadTooLarge",
    "PenstockError",
    "Policy",
    "PublishRefused",
    "Published",
    "Queue",
    "QueueNumbers",
    "Retry",
    "Schedule",
    "ScheduleMissing",
    "Schedules",
    "SchemaError",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "Settings",
    "Settled",
    "Subscription",
    "Topic",
    "Totals",
    "Tried",
    "UnsupportedConnection",
    "UpkeepReport",
    "Worker",
    "__version__",
    "install_sql",
    "upgrade_sql",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
