"""What a log says of a handler that failed: which message, which try, and what comes of it."""

import inspect
import logging
from datetime import timedelta
from types import TracebackType

from penstock.client.settlement import said

from .handlers import Handler
from .job import Job
from .outcomes import Defer, Fail, Outcome

_log = logging.getLogger("penstock.worker")


def tell_failure(job: Job, handler: Handler, error: BaseException, outcome: Outcome) -> None:
    """One line, and the traceback from the handler on."""
    level, consequence = _consequence(job, outcome)
    _log.log(
        level,
        "message %d (%s, %s) failed at try %d, %s: %s: %s",
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
        wait = outcome.delay or timedelta(0)
        return logging.WARNING, f"again in {wait.total_seconds():.3g} s"
    if isinstance(outcome, Defer | Fail):
        return logging.ERROR, "now a dead letter"
    return logging.ERROR, "which was acknowledged before"


def _from_handler(error: BaseException, handler: Handler) -> TracebackType | None:
    """Without the frames that led there, which are all ours; whole if the handler is not in it."""
    code = getattr(inspect.unwrap(handler.function), "__code__", None)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace or error.__traceback__
