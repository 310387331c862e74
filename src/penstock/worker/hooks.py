"""Functions that are called when a worker starts, stops, and when a handler fails."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Literal

_log = logging.getLogger("penstock.worker")

Hook = Callable[..., Any]
When = Literal["start", "stop", "error"]


class Hooks:
    """Plain or async functions, in the order in which they were given."""

    def __init__(self) -> None:
        self._hooks: dict[When, list[Hook]] = {"start": [], "stop": [], "error": []}

    def add(self, when: When, hook: Hook) -> None:
        self._hooks[when].append(hook)

    def has(self, when: When) -> bool:
        return bool(self._hooks[when])

    async def call(self, when: When, *args: object) -> None:
        """Raises what a hook raises."""
        for hook in self._hooks[when]:
            answer = hook(*args)
            if inspect.isawaitable(answer):
                await answer

    async def tell(self, when: When, *args: object) -> None:
        """A hook that fails here has no say in what becomes of the message, or of the stop."""
        try:
            await self.call(when, *args)
        except asyncio.CancelledError:
            raise
        except BaseException:  # sys.exit() too
            _log.exception("a hook for %s failed", when)
