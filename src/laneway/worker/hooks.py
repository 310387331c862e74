"""Functions that are called when a worker starts, stops, and when a handler fails."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Literal

_log = logging.getLogger("laneway.worker")

Hook = Callable[..., Any]
When = Literal["start", "stop", "error"]


class Hooks:
    """Ordinary or async functions, in the order in which they were registered."""

    def __init__(self) -> None:
        self._hooks: dict[When, list[Hook]] = {"start": [], "stop": [], "error": []}

    def add(self, when: When, hook: Hook) -> None:
        self._hooks[when].append(hook)

    def include(self, other: "Hooks") -> None:
        for when, hooks in other._hooks.items():
            self._hooks[when].extend(hooks)

    def has(self, when: When) -> bool:
        return bool(self._hooks[when])

    async def call(self, when: When, *args: object) -> None:
        """Raises what a hook raises."""
        for hook in self._hooks[when]:
            result = hook(*args)
            if inspect.isawaitable(result):
                await result

    async def call_safely(self, when: When, *args: object) -> None:
        """Logs what a hook raises, which changes neither a message's outcome nor a stop."""
        try:
            await self.call(when, *args)
        except asyncio.CancelledError:
            raise
        except BaseException:  # sys.exit() too
            _log.exception("a hook for %s failed", when)
