"""For your own tests: run a worker until nothing is left, move the clock, see what was published.

Its pytest plugin brings the fixtures ``laneway_queue``, ``laneway_async_queue``, ``laneway_clock``,
``laneway_url`` and ``laneway_schema``. Names are loaded when they are first used: pytest loads the
plugin in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .draining import Ran, drain, drain_async
    from .messages import assert_published, published
    from .movable_clock import MovableClock, clock

__all__ = [
    "MovableClock",
    "Ran",
    "assert_published",
    "clock",
    "drain",
    "drain_async",
    "published",
]

_MODULES = {
    "draining": "Ran drain drain_async",
    "messages": "assert_published published",
    "movable_clock": "MovableClock clock",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value
