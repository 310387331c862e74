"""OpenTelemetry: a span around each handler, child of whoever published; needs the extra ``otel``.

Only the API is used: without an SDK in the process all of it does nothing.
"""

from collections.abc import Mapping
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from penstock.client.fields import MessageFields

from .outcomes import Defer, Fail
from .performing import Next

_tracer = trace.get_tracer("penstock")


def traced(headers: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The headers with the current trace in them, for publish.

    >>> queue.publish({"order": 1}, headers=traced())
    """
    carrier: dict[str, Any] = dict(headers or {})
    propagate.inject(carrier)
    return carrier


async def tracing(message: MessageFields, call: Next) -> object:
    """The middleware: ``worker.middleware(tracing)``."""
    texts = {key: value for key, value in message.headers.items() if isinstance(value, str)}
    token = context.attach(propagate.extract(texts))
    try:
        with _tracer.start_as_current_span(
            f"handle {message.kind or 'message'}",
            kind=SpanKind.CONSUMER,
            attributes=_attributes(message),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await call()
            except (Defer, Fail):
                raise
            except Exception as error:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise
    finally:
        context.detach(token)


def _attributes(message: MessageFields) -> dict[str, str | int]:
    return {
        "messaging.system": "penstock",
        "messaging.operation.type": "process",
        "messaging.destination.name": message.queue,
        "messaging.message.id": str(message.id),
        "penstock.channel": message.channel,
        "penstock.kind": message.kind,
        "penstock.attempt": message.attempt,
        "penstock.fence": message.fence,
    }
