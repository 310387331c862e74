"""The nodes of a flow while they are collected, in both worlds; and what came before one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from laneway.contract import BATCH, Engine
from laneway.durations import Duration
from laneway.errors import (
    BacklogFull,
    ChannelClosed,
    InvalidCall,
    InvalidOption,
    PublishRefused,
    ResultMissing,
    shown,
)
from laneway.event import MessageEnd, StoredResult
from laneway.flow import WHEN, NodeDraft, PublishedFlow, When
from laneway.model import Names, NewMessage
from laneway.names import check_name
from laneway.payload import check_keep_result, decode
from laneway.plan import Plan
from laneway.spelling import option_hint

from .checks import check_choice, check_number
from .draft import TaskTarget, draft_new
from .options import ClientOptions

_MOST_IDS = 2**63 - 1


class AddedNode:
    """A message of a flow that others can come after; its ``id`` is known once the flow was
    published, and is that of the message."""

    __slots__ = ("_flow", "_id", "_number")

    def __init__(self, flow: "FlowNodes", number: int) -> None:
        self._flow = flow
        self._number = number
        self._id: int | None = None

    @property
    def id(self) -> int:
        """Raises InvalidCall if nothing was published, or not yet."""
        if self._id is None:
            raise InvalidCall(f"this node has no id: {self._flow._why_no_ids()}")
        return self._id

    def __repr__(self) -> str:
        return f"AddedNode({self._number}, id={self._id})"


Parents = AddedNode | int | Iterable[AddedNode | int] | None
PlainPayload = bytes | str | float | Mapping[Any, Any] | Sequence[Any] | None
P = ParamSpec("P")


class CalledWithoutArguments(Protocol):
    """A task that needs none."""

    def message(self) -> NewMessage: ...


class NodeOptions(TypedDict, total=False):
    """Those of ``queue.publish`` that a node can have."""

    channel: str | None
    queue: str | None
    headers: Mapping[str, Any] | None
    priority: int
    delay: Duration | None
    at: datetime | None
    expires_in: Duration | None
    expires_at: datetime | None
    max_attempts: int | None
    content_type: str | None
    keep_result: Duration | None
    limits: Names | None


class FlowNodes:
    """Collects nodes; they are published together, when the block ends without an error."""

    def __init__(
        self,
        options: ClientOptions,
        queue: str,
        channel: str,
        keep_result: Duration | None,
    ) -> None:
        self._queue = queue
        self._most = options.max_payload
        self._channel = check_name("channel", channel)
        self._keep_result = None if keep_result is None else check_keep_result(keep_result)
        self._drafts: list[NodeDraft] = []
        self._added: list[AddedNode] = []
        self._open = self._closed = False

    def _why_no_ids(self) -> str:
        if self._closed:
            return "nothing was published"
        return "it is published when the with block ends"

    # Python's types have no "the arguments of this function, and after=": with both, a call is
    # checked as add(task.message(…), after=…).
    @overload
    def add(
        self, call: NewMessage, /, *, after: Parents = None, when: When = "completed"
    ) -> AddedNode: ...
    @overload
    def add(self, task: TaskTarget[P], /, *args: P.args, **kwargs: P.kwargs) -> AddedNode: ...
    @overload
    def add(
        self, task: CalledWithoutArguments, /, *, after: Parents, when: When = "completed"
    ) -> AddedNode: ...
    @overload
    def add(
        self,
        payload: PlainPayload,
        /,
        *,
        kind: str = "",
        after: Parents = None,
        when: When = "completed",
        **options: Unpack[NodeOptions],
    ) -> AddedNode: ...
    @overload
    def add(
        self,
        payload: object,
        /,
        *,
        kind: str,
        after: Parents = None,
        when: When = "completed",
        **options: Unpack[NodeOptions],
    ) -> AddedNode: ...
    def add(  # type: ignore[misc]  # a task may have parameters of these names
        self,
        target: Any,
        /,
        *args: Any,
        after: Parents = None,
        when: When = "completed",
        **options: Any,
    ) -> AddedNode:
        """Adds a message that is begun ``after`` nodes that were added before it; at once if there
        are none.

        With a task, the arguments are those of its function, and ``task.using(…)`` has the options
        of the message; a payload takes the options of ``queue.publish``; a NewMessage, such as
        ``task.message(…)``, is taken as it is. ``when`` all parents have "completed", when all have
        "ended" in whatever way, or when all have ended and one of them "failed", that is, did not
        complete. A dead letter counts as failed, and holds those who wait for it to complete until
        it is redriven or discarded.

        >>> merged = flow.add(merge, after=pages)
        >>> flow.add({"import": 42}, kind="tell_owner", after=merged, when="ended")
        """
        if self._closed:
            raise InvalidCall("the flow was published: add to it inside of its with block")
        if not self._open:
            raise InvalidCall(
                "a flow is published when its block ends: write with queue.flow(…) as flow: (async "
                "with for an AsyncQueue), and add to it inside"
            )
        message = _message(target, args, options)
        if message.key is not None:
            raise InvalidOption(
                "a node of a flow has no key: the name of its flow is taken once while it runs"
            )
        if message.keep_result is None and self._keep_result is not None:
            message = replace(message, keep_result=self._keep_result)
        draft = draft_new(message, self._queue, self._channel, self._most)
        chosen = cast(When, check_choice("when", when, WHEN))
        parents = self._parents(after)
        if not parents and chosen != "completed":
            raise InvalidOption(f"when={chosen!r} needs nodes to come after: say after=")
        self._drafts.append(NodeDraft(draft, parents, chosen))
        self._added.append(AddedNode(self, len(self._drafts)))
        return self._added[-1]

    def _parents(self, after: Parents) -> Sequence[int]:
        if after is None:
            return ()
        if isinstance(after, AddedNode):
            return (self._parent(after),)
        if isinstance(after, int):
            after = (after,)
        if isinstance(after, str | bytes) or not isinstance(after, Iterable):
            raise InvalidOption(f"after is {shown(after)}: it takes nodes that were added before")
        return list(dict.fromkeys(map(self._parent, after)))

    def _parent(self, node: AddedNode | int) -> int:
        if isinstance(node, AddedNode):
            if node._flow is not self:
                raise InvalidOption("after has a node of another flow")
            return -node._number
        return self._known_parent(node)

    def _known_parent(self, node: object) -> int:
        raise InvalidOption(f"after is {shown(node)}: it takes what flow.add() returned")

    def _note_ids(self, ids: Sequence[int]) -> None:
        for node, id in zip(self._added, ids, strict=True):
            node._id = id

    def __len__(self) -> int:
        return len(self._drafts)


def known_id(node: object) -> int:
    """The id of a node that is there already."""
    return check_number("a node's id", node, 1, _MOST_IDS)


def _message(target: Any, args: tuple[Any, ...], options: dict[str, Any]) -> NewMessage:
    if isinstance(target, TaskTarget):
        message = target.message(*args, **options)
        if message.queue is None and target.queue is not None:
            message = replace(message, queue=target.queue)
        return message
    if isinstance(target, NewMessage):
        if args or options:
            raise InvalidCall("a NewMessage has its options already")
        return target
    if args:
        raise InvalidCall(f"{shown(target)} is not a task: it takes no arguments")
    try:
        return NewMessage(target, **options)
    except TypeError:
        known = [each.name for each in fields(NewMessage)][1:]
        wrong = next(name for name in options if name not in known)
        hint = option_hint(wrong, known)
        raise InvalidOption(f"flow.add() has no option {wrong}=: {hint}") from None


def flow_refusal(name: str, answer: PublishedFlow) -> PublishRefused:
    if answer.status == "closed":
        return ChannelClosed(
            f"a channel of the flow {name!r} is being removed; nothing of it was published"
        )
    return BacklogFull(
        f"a channel of the flow {name!r} is full; nothing of it was published: "
        "publish later, or raise its backlog limit"
    )


# What came before a node of a flow, with its results.

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
    found = yield from engine.flows.parents(message_id)
    stored: list[StoredResult | None] = []
    for start in range(0, len(found), BATCH):
        ids = [parent.id for parent in found[start : start + BATCH]]
        stored += yield from engine.events.results(ids)
    return [Parent(*parent, result) for parent, result in zip(found, stored, strict=True)]
