"""The current trace, into the process of a handler: what it does belongs to its message."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context, propagate

from laneway.worker.telemetry.process_wide import Carried


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
