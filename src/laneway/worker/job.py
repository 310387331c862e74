"""A job: a claimed message on its way through the worker, and how its outcome is decided."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from laneway.client.shared.error_text import LOG_CHARACTERS, said
from laneway.client.shared.message_fields import MessageFields
from laneway.durations import check_duration
from laneway.errors import DecodeError, InvalidPayload, LeaseLost, shown
from laneway.model import Settled
from laneway.plan import ClaimColumn as Column
from laneway.plan import Row
from laneway.retry import Exponential, FailedAttempt, Retry

from .clock import now
from .connection_pools import RETRY_AFTER, is_exhausted
from .outcomes import (
    CANCEL,
    COMPLETE,
    GIVE_BACK,
    LEAVE,
    Complete,
    Defer,
    Fail,
    GiveBack,
    Outcome,
    Throttled,
)
from .telemetry.logs import log_fields

if TYPE_CHECKING:
    from .handlers import Handler
    from .telemetry.observer import OutcomeName

_log = logging.getLogger("laneway.worker")

FALLBACK = Exponential()
"""For a retry strategy that itself fails."""

_NOTED_WAIT = 5  # milliseconds

Interruption = Literal["lost", "shutdown", "cancelled"]


class Job(MessageFields):
    """The message with the worker's notes on it. What is read for every message is an attribute
    here, not a property."""

    __slots__ = (
        "cancel_requested",
        "closed",
        "content_type",
        "deadline",
        "failure",
        "fence",
        "handler",
        "id",
        "in_transaction",
        "interruption",
        "lost",
        "lost_reported",
        "maybe_locked",
        "outcome",
        "own_result",
        "payload",
        "progress_noted",
        "queued_at",
        "settled",
        "slot",
        "started",
        "task",
    )
    id: int
    fence: int
    content_type: str
    payload: bytes
    lost: bool
    cancel_requested: bool

    def __init__(
        self,
        row: Row,
        claimed_at: datetime,
        until: datetime,
        deadline: float,
        handler: "Handler | None",
    ) -> None:
        self._row = row
        self.id = row[Column.ID]
        self.fence = row[Column.FENCE]
        self.content_type = row[Column.CONTENT_TYPE]
        self.payload = row[Column.PAYLOAD]
        self.claimed_at = claimed_at
        self.until = until
        self.deadline = deadline  # the earliest end of the lease, by our own clock
        self.handler = handler
        self.slot: int | None = None  # in the table of the heartbeat process
        self.queued_at = 0.0
        self.started = 0.0
        self.task: asyncio.Task[None] | None = None
        self.interruption: Interruption | None = None
        self.settled = False  # by the handler itself
        # The handler's transaction may hold the lock of the lease: whoever writes to it waits.
        self.maybe_locked = False
        self.in_transaction = False  # settled by the handler in a transaction that may roll back
        # What the handler raised and what it would mean, until it is known whether the transaction
        # in which it had settled the message was committed.
        self.failure: tuple[BaseException, Outcome] | None = None
        self.own_result: Settled | None = None  # what its handler's call was answered
        self.outcome: OutcomeName | None = None  # to be written; None before its handler ended
        self.lost = False
        self.lost_reported = False
        self.closed = False  # nothing more is written for it
        self.cancel_requested = False
        self.progress_noted: tuple[float | None, str | None] | None = None

    @property
    def _waited(self) -> int | None:
        """From the claim's answer to the handler's start; what is shorter than a few milliseconds
        is not worth a column of the history."""
        wait = int((self.started - self.queued_at) * 1000) if self.started else 0
        return wait if wait >= _NOTED_WAIT else None

    @property
    def keep_result(self) -> timedelta | None:
        """What the message asks for, else what its handler says."""
        # Most have no headers.
        asked = None if self._row[Column.HEADERS] is None else super().keep_result
        return self.handler.keep_result if asked is None and self.handler else asked

    def log_fields(self) -> dict[str, object]:
        return log_fields(self)


class UnstorableResult(Exception):
    """What the handler returned cannot be kept; a retry would return the same."""

    def __init__(self, cause: InvalidPayload) -> None:
        super().__init__(str(cause))
        self.__cause__ = cause


class UndecodablePayload(Exception):
    """The payload does not match the handler's annotation; a retry would not help."""

    def __init__(self, cause: DecodeError) -> None:
        super().__init__(str(cause))
        self.__cause__ = cause


def after_return(job: Job, handler: "Handler", result: object) -> Outcome:
    """What the handler did to its message wins over what it returns, and that over ``ack``."""
    if job.settled or job.in_transaction or job.lost or handler.ack == "first":
        return LEAVE
    if isinstance(result, Defer | Fail | Throttled):
        return CANCEL if job.cancel_requested else result
    if handler.ack == "manual":
        _log.warning(
            "%s returned without settling its message, which comes back when its lease expires",
            handler.name,
            extra=job.log_fields(),
        )
        return LEAVE
    keep = job.keep_result
    return COMPLETE if keep is None else Complete(keep, result)


def after_error(job: Job, handler: "Handler", error: BaseException) -> Outcome:
    """A handler's transaction may have committed or rolled back: if it committed, the fence
    refuses this outcome."""
    if job.settled or job.lost or handler.ack == "first":
        return LEAVE
    if job.cancel_requested:
        return CANCEL
    if job.interruption == "shutdown":
        return GIVE_BACK
    if isinstance(error, LeaseLost) and error.message_id == job.id:
        return LEAVE
    if isinstance(error, Defer | Fail | Throttled):
        return error
    if is_exhausted(error):
        return GiveBack(RETRY_AFTER)
    if isinstance(error, UnstorableResult):
        return Fail("result", error=error.__cause__)
    if isinstance(error, UndecodablePayload):
        return Fail("payload", error=error.__cause__)
    if handler.ack == "reject":
        return Fail("error", error=error)
    delay = next_delay(handler.retry, job, error)
    return Fail("gave_up", error=error) if delay is None else Defer(delay, error=error)


def rule_of(retry: Retry, job: Job, error: BaseException) -> str:
    """Which part of the strategy gave the message up."""
    attempts, give_up_on = (getattr(retry, name, None) for name in ("attempts", "give_up_on"))
    name = type(retry).__name__
    if attempts is not None and job.failures + 1 >= attempts:
        return f"attempts={attempts} of {name}"
    if give_up_on and isinstance(error, give_up_on):
        return f"give_up_on of {name}"
    within = getattr(retry, "within", None)
    return name if within is None else f"within={within} of {name}"


def next_delay(retry: Retry, job: Job, error: BaseException) -> timedelta | None:
    """From the retry strategy, or from the fallback if that fails or returns an invalid delay."""
    age = job.claimed_at - job.published_at + timedelta(seconds=max(0.0, now() - job.started))
    failed = FailedAttempt(job.failures + 1, error, age)
    try:
        delay = retry.delay(failed)
        return None if delay is None else check_duration("its delay", delay)
    except BaseException as failure:  # a broken strategy must not cost the message
        _log.error(
            "the retry strategy %s failed: %s",
            shown(retry),
            said(failure, LOG_CHARACTERS),
            extra=job.log_fields(),
        )
    return FALLBACK.delay(failed)
