"""What the command ``opentelemetry-instrument`` finds by the entry point."""

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

from . import instrument, uninstrument


class LanewayInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    def instrumentation_dependencies(self) -> Collection[str]:
        return ["laneway"]

    def _instrument(self, **options: Any) -> None:
        instrument(options.get("tracer_provider"), options.get("meter_provider"))

    def _uninstrument(self, **options: Any) -> None:
        uninstrument()
