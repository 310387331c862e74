"""The tracer and the four instruments, and an operation that is recorded by them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from laneway import __version__
from laneway.client.shared.settle_items import said

from .conventions import (
    CONSUMED,
    ERROR_TYPE,
    OPERATION_DURATION,
    PROCESS_DURATION,
    SECONDS,
    SENT,
    OperationType,
    Value,
    error_type,
    operation_attributes,
    span_name,
)

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


class Recorded:
    """A span, and what its metrics will say: attributes of both, and how it ended."""

    def __init__(self, span: Span, measured: dict[str, Value], begun: float) -> None:
        self.span = span
        self.measured = measured
        self.begun = begun

    def fail(self, error: BaseException, text: str | None = None) -> None:
        self.fail_as(error_type(error), text or said(error) or type(error).__name__)
        with suppress(Exception):  # its text may be whatever its author wrote, and raise
            self.span.record_exception(error)

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
