"""OpenTelemetry: spans and metrics by the messaging conventions; needs the extra ``otel``.

Only the API is used: without an SDK in the process nothing is recorded.

>>> from laneway.integrations.otel import instrument
>>> instrument()
"""

from laneway.extras import needs

with needs("laneway.integrations.otel", "opentelemetry-api", "otel"):
    import opentelemetry.trace  # noqa: F401

from .creation import traced
from .process import tracing
from .switch import instrument, uninstrument

__all__ = ["instrument", "traced", "tracing", "uninstrument"]
