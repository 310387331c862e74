"""A client whose verbs write into the audit what they did, in the same transaction."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from laneway.client.shared.audited import noted
from laneway.operations import AuditNote
from laneway.plan import Plan

from .core import AsyncCore

T = TypeVar("T")
Item = TypeVar("Item")


class AsyncAuditedCore(AsyncCore):
    """The same engine and connections as ``core``; every plan ends with a row of the audit, and the
    two are one transaction."""

    def __init__(
        self, core: AsyncCore, note: AuditNote, count: Callable[[Any], int | None]
    ) -> None:
        self.engine = core.engine
        self.options = core.options
        self._core = core
        self._note = note
        self._count = count

    async def run(self, plan: Plan[T], connection: object = None, *, atomic: bool = False) -> T:
        both = noted(self.engine, plan, self._note, self._count)
        return await self._core.run(both, connection, atomic=True)

    async def run_items(
        self,
        verb: Callable[[Sequence[Item]], Plan[list[T]]],
        items: Sequence[Item],
        connection: object = None,
        *,
        waits: bool = False,
    ) -> list[T]:
        return await self.run(verb(items), connection)
