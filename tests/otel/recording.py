"""The real SDK, recording in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from laneway.integrations.otel import instrument, uninstrument


class Recording:
    def __init__(self, *more: SpanExporter) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.provider = TracerProvider()
        for exporter in (self._exporter, *more):
            self.provider.add_span_processor(SimpleSpanProcessor(exporter))
        self.meters = MeterProvider([self._reader])

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        found = self._exporter.get_finished_spans()
        return [span for span in found if name is None or span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        """The attributes and the value (or how many were measured) of each series."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), _value(point))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]


def _value(point: Any) -> Any:
    return point.count if hasattr(point, "count") else point.value


@contextmanager
def recording(*more: SpanExporter) -> Iterator[Recording]:
    found = Recording(*more)
    instrument(found.provider, found.meters)
    try:
        yield found
    finally:
        uninstrument()
        found.provider.shutdown()
        found.meters.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    assert span.attributes is not None
    return dict(span.attributes)


def trace_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def span_id(span: ReadableSpan | None) -> int:
    assert span is not None and span.context is not None
    return int(span.context.span_id)


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else int(span.parent.span_id)


def linked_ids(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def is_red(span: ReadableSpan) -> bool:
    return span.status.status_code.name == "ERROR"
