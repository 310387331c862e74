"""The worker's spans: "process" around a handler, the settle of what became of its message, and
the current trace in the process of a handler.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from laneway.client.shared.message_fields import MessageFields
from laneway.model import ClaimStatus, Settled
from laneway.worker.definition import Next
from laneway.worker.job import Job
from laneway.worker.outcomes import Defer, Fail, Throttled
from laneway.worker.telemetry import process_wide
from laneway.worker.telemetry.observer import OutcomeName
from laneway.worker.telemetry.process_wide import Carried

from .creation import creation_context, link_to
from .instruments import (
    ATTEMPT,
    CHANNEL,
    FENCE,
    KIND,
    MESSAGE_ID,
    Recorded,
    Value,
    begin,
    instruments,
    recorded,
)


def current() -> dict[str, str]:
    """The process span of the message, as the propagators write it."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


@contextmanager
def taken_over(carrier: dict[str, str]) -> Iterator[None]:
    """Makes it the current one while the handler runs."""
    token = context.attach(propagate.extract(carrier))
    try:
        yield
    finally:
        context.detach(token)


CURRENT_TRACE = Carried(current, f"{__name__}:{taken_over.__name__}")


LEASE_LOST = "laneway.errors.LeaseLost"
_VERBS: dict[OutcomeName, str] = {
    "completed": "complete",
    "deferred": "defer",
    "retried": "defer",
    "failed": "fail",
    "given_back": "give_back",
}
_processed: dict[MessageFields, Context] = {}
"""The process span of each message, until its outcome is handed over to a SettleSpans."""


async def tracing(message: MessageFields, call: Next) -> object:
    """The middleware; ``instrument()`` adds it to every worker of the process.

    The span is a child of the producer's, and linked to it.
    """
    parent = creation_context(message.headers)
    token = context.attach(parent)
    try:
        started = begin(
            "process",
            "process",
            SpanKind.CONSUMER,
            message.queue,
            message_attributes(message),
            links=link_to(parent),
            context=parent,
        )
        instruments().consumed.add(1, dict(started.measured))
        started.measured[KIND] = message.kind
        with recorded(started, "process"):
            if any(isinstance(observer, SettleSpans) for observer in process_wide.observers):
                _processed[message] = trace.set_span_in_context(started.span, parent)
            return await _judged(message, call, started)
    finally:
        context.detach(token)


async def _judged(message: MessageFields, call: Next, started: Recorded) -> object:
    """Calls the handler; whatever is not the end or the progress of the work is an error."""
    try:
        result = await call()
    except (Defer, Fail) as outcome:
        _judge(started, outcome)
        raise
    except asyncio.CancelledError as error:
        _cancelled(started, message, error)
        raise
    if isinstance(result, Defer | Fail):
        _judge(started, result)
    elif isinstance(result, Throttled):
        started.fail(result)
    elif message.lost and not (isinstance(message, Job) and message.settled):
        started.fail_as(LEASE_LOST, "the lease was lost while the handler ran")
    return result


def _judge(started: Recorded, outcome: Defer | Fail) -> None:
    if isinstance(outcome, Defer) and outcome.error is None and outcome.reason is None:
        return
    if isinstance(outcome.error, BaseException):
        started.fail(outcome.error)
    else:
        text = outcome.error or outcome.reason or ""
        started.fail_as(f"laneway.{type(outcome).__name__}", text)


def _cancelled(started: Recorded, message: MessageFields, error: asyncio.CancelledError) -> None:
    job = message if isinstance(message, Job) else None
    if job is not None and job.interruption == "lost":
        started.fail_as(LEASE_LOST, "the lease was lost while the handler ran")
    elif job is not None and job.interruption is not None:
        started.fail(error, f"interrupted: {job.interruption}")
    elif job is not None and job.handler is not None and job.handler.timeout is not None:
        # The timeout cancels the handler, and becomes a TimeoutError further out.
        started.fail_as("TimeoutError", f"the handler took longer than {job.handler.timeout} s")
    else:
        started.fail(error)


class SettleSpans:
    """An observer: a span from the handler's end until the database has the outcome, a child of
    the process span."""

    def __init__(self) -> None:
        self._open: dict[Job, Recorded] = {}

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        pass

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        parent = _processed.pop(job, None)
        verb = _VERBS.get(outcome)
        if parent is not None and verb is not None:
            self._open[job] = begin(
                verb,
                "settle",
                SpanKind.CLIENT,
                job.queue,
                message_attributes(job),
                links=link_to(creation_context(job.headers)),
                context=parent,
            )

    def lost(self, job: Job) -> None:
        pass

    def settled(self, job: Job, result: Settled | None) -> None:
        started = self._open.pop(job, None)
        if started is None:
            return
        if result is not None and result.lost:
            started.fail_as(LEASE_LOST, "another worker may have the message")
        started.span.end()
        started.end("settle")


def message_attributes(message: MessageFields) -> dict[str, Value]:
    return {
        MESSAGE_ID: str(message.id),
        CHANNEL: message.channel,
        KIND: message.kind,
        ATTEMPT: message.attempt,
        FENCE: message.fence,
    }
