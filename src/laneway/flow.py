"""Data types of flows: messages that wait for other messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, get_args

from .model import Draft, Listing

When = Literal["completed", "failed", "ended"]
WHEN: tuple[When, ...] = ("completed", "failed", "ended")

FlowState = Literal["running", "dead", "completed", "failed", "cancelled"]
FLOW_STATES: tuple[FlowState, ...] = get_args(FlowState)
NodeState = Literal[
    "held",
    "waiting",
    "leased",
    "dead",
    "completed",
    "cancelled",
    "lapsed",
    "discarded",
    "skipped",
]

LOOK_FLOWS = 1000
"""How many flows a filtered list looks at."""
MOST_PARENTS = 100
"""How many parents a node is listed with: one may come after 100,000 others."""
MOST_LINKS = 500

KEEP_FLOW = timedelta(days=1)
"""How long an ended flow can still be looked at, if nothing else is said."""


class NodeDraft(NamedTuple):
    """A message that is begun after others. A parent below zero is a node of the same call, the
    first one is -1; one above zero is the id of a node that was added before."""

    draft: Draft
    parents: Sequence[int]
    when: When


class FlowDraft(NamedTuple):
    """A flow to publish; its nodes come beside it."""

    queue: str
    name: str
    keep: timedelta


class PublishedFlow(NamedTuple):
    """``ids`` are those of its nodes, in the order in which they were added; none if a flow of this
    name has not ended yet ("existing"), or if a channel refuses ("full", "closed")."""

    id: int | None
    ids: list[int]
    status: Literal["published", "existing", "full", "closed"]


class StagedNodes(NamedTuple):
    """What the holder of a lease added; "none": its message belongs to no flow."""

    ids: list[int]
    status: Literal["staged", "lost", "none"]


@dataclass(frozen=True, slots=True)
class FlowInfo:
    """A flow, and how many of its nodes are in which state.

    ``state`` is "dead" if nothing of it runs and a dead letter holds what is left: redrive the
    letter, and the flow goes on. "failed": it has ended, and some of it was cancelled, lapsed or
    discarded.
    """

    id: int
    queue: str
    name: str
    created_at: datetime
    cancelled_at: datetime | None
    ended_at: datetime | None
    """When upkeep saw that it had ended."""
    state: FlowState
    held: int
    live: int
    dead: int
    completed: int
    failed: int
    skipped: int

    @property
    def nodes(self) -> int:
        return self.held + self.live + self.dead + self.completed + self.failed + self.skipped


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node of a flow; its id is that of its message, also before that is published. "held": it
    waits for parents. "skipped": its parents ended otherwise than it was meant for."""

    id: int
    queue: str
    channel: str
    kind: str
    when: When
    state: NodeState
    ended_at: datetime | None
    parents: Sequence[int]
    """The first MOST_PARENTS of them, in the order that was given."""
    pending: int = 0
    """How many of its parents have not ended yet."""


class FlowPage(Listing[FlowInfo]):
    """Flows, the newest first. ``next`` is the id to go on ``before``, None at the end; ``looked``
    how many were read for it. A page can be empty and not the last one: with a filter a call looks
    at LOOK_FLOWS at most."""

    def __init__(
        self, found: Iterable[FlowInfo] = (), next: int | None = None, looked: int = 0
    ) -> None:
        super().__init__(found)
        self.next = next
        self.looked = looked


class FlowLink(NamedTuple):
    """A node beside another one: it came before ("parent") or comes after it ("child")."""

    side: Literal["parent", "child"]
    id: int
    queue: str
    channel: str
    kind: str
    state: NodeState


class DeadNode(NamedTuple):
    """A dead letter of a flow."""

    id: int
    queue: str
    channel: str
    kind: str
    died_at: datetime


@dataclass(frozen=True, slots=True)
class FlowPlace:
    """Where a message stands in its flow, with the first MOST_LINKS nodes of each side."""

    flow: FlowInfo
    node: NodeInfo
    parents: Sequence[FlowLink]
    children: Sequence[FlowLink]


class FlowParent(NamedTuple):
    """A node that another one came after."""

    id: int
    kind: str
    state: str
