"""The two worlds: what runs a plan, and the loop that drives it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

from laneway.plan import Plan, Row, Statement

T = TypeVar("T")

Execute = Callable[[Statement], Sequence[Row]]
AsyncExecute = Callable[[Statement], Awaitable[Sequence[Row]]]


class Runner(Protocol):
    """Runs plans on connections of its own; one statement is one transaction unless ``atomic``."""

    def run(self, plan: Plan[T], *, atomic: bool = False) -> T: ...

    def close(self) -> None: ...


class AsyncRunner(Protocol):
    """The same for asyncio."""

    async def run(self, plan: Plan[T], *, atomic: bool = False) -> T: ...

    async def close(self) -> None: ...


@runtime_checkable
class Transactional(Protocol):
    """A runner that lends a connection of its own, the driver's native one, in a transaction."""

    def transaction(self) -> AbstractContextManager[Any]: ...


@runtime_checkable
class AsyncTransactional(Protocol):
    """The same for asyncio."""

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...


def drive(plan: Plan[T], execute: Execute) -> T:
    """Runs the plan to its end, one statement after the other."""
    try:
        statement = next(plan)
        while True:
            statement = plan.send(execute(statement))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def drive_async(plan: Plan[T], execute: AsyncExecute) -> T:
    """The same for asyncio."""
    try:
        statement = next(plan)
        while True:
            statement = plan.send(await execute(statement))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
