"""Tests are written for asyncio; scripts/make_sync.py writes the others."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def run_async(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """A test that runs in an event loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            await test(*args, **kwargs)

        asyncio.run(main())

    return run


def run_sync(test: Callable[P, T]) -> Callable[P, T]:
    """The same in the sync world: nothing to do."""
    return test
