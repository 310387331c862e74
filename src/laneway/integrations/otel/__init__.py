"""OpenTelemetry: spans and metrics by the messaging conventions; needs the extra ``otel``.

Only the API is used: without an SDK in the process nothing is recorded.

>>> from laneway.integrations.otel import instrument
>>> instrument()
"""

from laneway.extras import needs

with needs("laneway.integrations.otel", "opentelemetry-api", "otel"):
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

from laneway.worker.telemetry import process_wide

from .client import unwrap_verbs, wrap_verbs
from .creation import traced
from .instruments import Instruments, use
from .process import CURRENT_TRACE, SettleSpans, tracing

__all__ = ["instrument", "traced", "tracing", "uninstrument"]

_observer = SettleSpans()
_is_on = False


def instrument(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Spans and metrics of every client and worker of this process, from now on.

    Without providers, those that are set for the process are used. ``opentelemetry-instrument``
    calls this by itself. Calling it again only changes the providers.

    >>> instrument()
    """
    global _is_on
    use(Instruments(tracer_provider, meter_provider))
    if not _is_on:
        wrap_verbs()
        process_wide.middleware.insert(0, tracing)
        process_wide.observers.append(_observer)
        process_wide.carried.append(CURRENT_TRACE)
        _is_on = True


def uninstrument() -> None:
    """Takes everything back; workers that run keep what they began with."""
    global _is_on
    if _is_on:
        unwrap_verbs()
        process_wide.middleware.remove(tracing)
        process_wide.observers.remove(_observer)
        process_wide.carried.remove(CURRENT_TRACE)
        _is_on = False
