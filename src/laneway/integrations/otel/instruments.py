"""Names of the messaging conventions, the tracer and the four instruments, and an operation that
is recorded by them.

Written out here: the package that has them as constants marks all of them as unstable, and is one
more to install.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Literal
from urllib.parse import urlsplit

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from laneway import __version__
from laneway.client.shared.error_text import rendered, said

Value = str | int
OperationType = Literal["send", "receive", "process", "settle"]

SYSTEM = "messaging.system"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
BATCH_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

CHANNEL = "messaging.laneway.channel"
KIND = "messaging.laneway.kind"
ATTEMPT = "messaging.laneway.attempt"
FENCE = "messaging.laneway.fence"

SENT = "messaging.client.sent.messages"
CONSUMED = "messaging.client.consumed.messages"
OPERATION_DURATION = "messaging.client.operation.duration"
PROCESS_DURATION = "messaging.process.duration"

# As the conventions advise for both durations.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


def operation_attributes(
    name: str, operation_type: OperationType, destination: str | None
) -> dict[str, Value]:
    """Those that spans and metrics share."""
    found: dict[str, Value] = {
        SYSTEM: "laneway",
        OPERATION_NAME: name,
        OPERATION_TYPE: operation_type,
    }
    if destination is not None:
        found[DESTINATION] = destination
    return found


def span_name(name: str, destination: str | None) -> str:
    return name if destination is None else f"{name} {destination}"


def common(names: Sequence[str]) -> str | None:
    """The one destination of a batch, if it has one."""
    return names[0] if names and all(name == names[0] for name in names) else None


def error_type(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def server_attributes(url: str) -> dict[str, Value]:
    """Host and port of the database, never the credentials; nothing for a file."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # several hosts
        return {}
    if not host:
        return {}
    return {SERVER_ADDRESS: host} if port is None else {SERVER_ADDRESS: host, SERVER_PORT: port}


_SCHEMA = "https://opentelemetry.io/schemas/1.27.0"


class Instruments:
    """Those of one pair of providers; without providers, those that are set for the process, now
    or later."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self.tracer = trace.get_tracer("laneway", __version__, tracer_provider, _SCHEMA)
        meter = metrics.get_meter("laneway", __version__, meter_provider, _SCHEMA)
        self.sent = meter.create_counter(
            SENT, "{message}", "Number of messages producer attempted to send to the broker."
        )
        self.consumed = meter.create_counter(
            CONSUMED, "{message}", "Number of messages that were delivered to the application."
        )
        self.operation_duration = meter.create_histogram(
            OPERATION_DURATION,
            "s",
            "Duration of messaging operation initiated by a producer or consumer client.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.process_duration = meter.create_histogram(
            PROCESS_DURATION,
            "s",
            "Duration of processing operation.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )


_used: Instruments | None = None


def use(instruments: Instruments) -> None:
    global _used
    _used = instruments


def instruments() -> Instruments:
    global _used
    if _used is None:
        _used = Instruments()
    return _used


def _attributes_of(error: BaseException) -> dict[str, str]:
    """As a span's record_exception has them, but with an end."""
    return {
        "exception.type": error_type(error),
        "exception.message": said(error),
        "exception.stacktrace": rendered(error, error.__traceback__),
        "exception.escaped": "False",
    }


class Recorded:
    """A span, and what its metrics will say: attributes of both, and how it ended."""

    def __init__(self, span: Span, measured: dict[str, Value], begun: float) -> None:
        self.span = span
        self.measured = measured
        self.begun = begun

    def fail(self, error: BaseException, text: str | None = None) -> None:
        self.fail_as(error_type(error), text or said(error) or type(error).__name__)
        with suppress(Exception):  # its text may be whatever its author wrote, and raise
            self.span.add_event("exception", _attributes_of(error))

    def fail_as(self, kind: str, text: str) -> None:
        self.measured[ERROR_TYPE] = kind
        self.span.set_attribute(ERROR_TYPE, kind)
        self.span.set_status(Status(StatusCode.ERROR, text))

    def end(self, operation_type: OperationType) -> None:
        used = instruments()
        process = operation_type == "process"
        histogram = used.process_duration if process else used.operation_duration
        histogram.record(perf_counter() - self.begun, self.measured)


def begin(
    name: str,
    operation_type: OperationType,
    kind: SpanKind,
    destination: str | None,
    attributes: Mapping[str, Value],
    *,
    server: Mapping[str, Value] | None = None,
    links: Sequence[Link] = (),
    context: Context | None = None,
    since: tuple[int, float] | None = None,
) -> Recorded:
    """A span that somebody ends later. ``since`` is when it began, if not now: nanoseconds since
    1970, and ``perf_counter()``."""
    moment, begun = since or (None, perf_counter())
    shared = operation_attributes(name, operation_type, destination) | dict(server or {})
    span = instruments().tracer.start_span(
        span_name(name, destination),
        context,
        kind,
        {**shared, **attributes},
        links,
        moment,
        record_exception=False,
        set_status_on_exception=False,
    )
    return Recorded(span, shared, begun)


@contextmanager
def recorded(started: Recorded, operation_type: OperationType) -> Iterator[Recorded]:
    """Makes the span the current one, and ends it; what is raised inside is its error."""
    with trace.use_span(
        started.span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        try:
            yield started
        except BaseException as error:
            if ERROR_TYPE not in started.measured:
                started.fail(error)
            raise
        finally:
            started.end(operation_type)
