"""The log line of a failed handler: which message, which attempt, and what happens next."""

import inspect
import logging
from types import TracebackType

from laneway.client.shared.settle_items import said
from laneway.durations import to_seconds
from laneway.worker.handlers import Handler
from laneway.worker.job import Job
from laneway.worker.outcomes import Defer, Fail, Outcome

_log = logging.getLogger("laneway.worker")


def log_failure(job: Job, handler: Handler, error: BaseException, outcome: Outcome) -> None:
    """One line, and the traceback from the handler on."""
    level, consequence = _consequence(job, outcome)
    _log.log(
        level,
        "message %d (%s, %s) failed at attempt %d, %s: %s: %s",
        job.id,
        job.channel,
        handler.name,
        job.attempt,
        consequence,
        type(error).__name__,
        said(error),
        exc_info=(type(error), error, _from_handler(error, handler)),
        extra=job.log_fields(),
    )


def _consequence(job: Job, outcome: Outcome) -> tuple[int, str]:
    if isinstance(outcome, Defer) and job.failures + 1 < job.max_attempts:
        return logging.WARNING, f"retrying in {to_seconds(outcome.delay or 0):.3g} s"
    if isinstance(outcome, Defer | Fail):
        return logging.ERROR, "now a dead letter"
    return logging.ERROR, "which was acknowledged before"


def _from_handler(error: BaseException, handler: Handler) -> TracebackType | None:
    """Without the frames of the worker; whole if the handler is not in it."""
    code = getattr(inspect.unwrap(handler.function), "__code__", None)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace or error.__traceback__
