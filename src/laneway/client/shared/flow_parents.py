"""What came before a node of a flow, with its results."""

from typing import Any, NamedTuple, TypeVar, overload

from laneway.contract import BATCH, Engine
from laneway.errors import ResultMissing
from laneway.event import MessageEnd, StoredResult
from laneway.payload import decode
from laneway.plan import Plan

T = TypeVar("T")


class Parent(NamedTuple):
    """A message that another one came after: how it ended, and what its handler returned."""

    id: int
    kind: str
    state: str
    stored: StoredResult | None

    @property
    def completed(self) -> bool:
        return self.state == "completed"

    @overload
    def result(self, wanted: type[T]) -> T: ...
    @overload
    def result(self, wanted: Any = Any) -> Any: ...
    def result(self, wanted: Any = Any) -> Any:
        """What its handler returned, as ``wanted``; raises ResultMissing if that was not kept.

        >>> parent.result(int)
        """
        if self.stored is None:
            raise ResultMissing(
                f"message {self.id} of the flow is {self.state}, and its result is not kept: "
                "publish the flow with keep_result=, longer than the flow takes",
                MessageEnd(self.id, "unknown"),
            )
        return decode(self.stored.payload, self.stored.content_type, wanted)


def parents_of(engine: Engine, message_id: int) -> Plan[list[Parent]]:
    found = yield from engine.parents(message_id)
    stored: list[StoredResult | None] = []
    for start in range(0, len(found), BATCH):
        ids = [parent.id for parent in found[start : start + BATCH]]
        stored += yield from engine.results(ids)
    return [Parent(*parent, result) for parent, result in zip(found, stored, strict=True)]
