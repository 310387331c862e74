"""Observers and middleware of every worker of this process, beside the worker's own: for an
instrumentation that is switched on from outside."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .observer import Observer

if TYPE_CHECKING:
    from laneway.worker.definition import Middleware

observers: list[Observer] = []
middleware: "list[Middleware]" = []


class Carried(NamedTuple):
    """What goes with a message into the process of its handler.

    ``write`` is called where the handler would run otherwise. ``place`` is "module:name" of a
    context manager that the process imports, and enters with what was written.
    """

    write: Callable[[], dict[str, str]]
    place: str


carried: list[Carried] = []
