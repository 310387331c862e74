"""From what a handler returned or raised to what becomes of its message."""

import logging
from datetime import timedelta

from penstock.client.checks import check_length
from penstock.client.settlement import said
from penstock.errors import DecodeError, LeaseLost, shown
from penstock.retry import Exponential, Retry, Tried

from .clock import now
from .handlers import Handler
from .job import Job
from .outcomes import COMPLETE, GIVE_BACK, LEAVE, Defer, Fail, Outcome

_log = logging.getLogger("penstock.worker")

FALLBACK = Exponential()
"""For a strategy that itself fails."""


def after_return(job: Job, handler: Handler, result: object) -> Outcome:
    """What was done by hand wins over what is returned, and that over the policy."""
    if job.acted or job.in_transaction or job.lost or handler.ack == "first":
        return LEAVE
    if isinstance(result, Defer | Fail):
        return result
    if handler.ack == "manual":
        _log.warning(
            "%s returned without settling its message: it comes back when its lease runs out",
            handler.name,
            extra=job.log_fields(),
        )
        return LEAVE
    return COMPLETE


def after_error(job: Job, handler: Handler, error: BaseException) -> Outcome:
    """A transaction that may have rolled back is no obstacle: if it did not, the fence refuses."""
    if job.acted or job.lost or handler.ack == "first":
        return LEAVE
    if job.interruption == "shutdown":
        return GIVE_BACK
    if isinstance(error, LeaseLost) and error.message_id == job.id:
        return LEAVE
    if isinstance(error, Defer | Fail):
        return error
    if isinstance(error, UndecodablePayload):
        return Fail("payload", error=error.__cause__)
    if handler.ack == "reject":
        return Fail("error", error=error)
    delay = next_delay(handler.retry, job, error)
    return Fail("gave_up", error=error) if delay is None else Defer(delay, error=error)


class UndecodablePayload(Exception):
    """The payload is not what the handler's annotation asks for; no retry mends that."""

    def __init__(self, cause: DecodeError) -> None:
        super().__init__(str(cause))
        self.__cause__ = cause


def next_delay(retry: Retry, job: Job, error: BaseException) -> timedelta | None:
    """What the strategy says, or the fallback if it fails or answers nonsense."""
    age = job.claimed_at - job.published_at + timedelta(seconds=max(0.0, now() - job.started))
    tried = Tried(job.failures + 1, error, age)
    try:
        delay = retry.delay(tried)
        return None if delay is None else check_length("its delay", delay)
    except BaseException as failure:  # a broken strategy must not cost the message
        _log.error(
            "the retry strategy %s failed: %s", shown(retry), said(failure), extra=job.log_fields()
        )
    return FALLBACK.delay(tried)
