"""What waits in a queue, as a test expects it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, overload

from laneway.client.aio.queue import AsyncQueue
from laneway.client.sync.queue import Queue
from laneway.drivers.sqlite.url import MEMORY
from laneway.errors import DecodeError, InvalidOption
from laneway.model import NewMessage
from laneway.payload import JSON, as_published, decode_json, encode
from laneway.worker.tasks.clients import twin
from laneway.worker.tasks.task import TaskView

if TYPE_CHECKING:
    from laneway.inspection import MessageInfo


_ANY: Any = object()
P = ParamSpec("P")


@overload
def assert_published(task: TaskView[..., Any], /) -> "Sequence[MessageInfo]": ...
@overload
def assert_published(
    task: TaskView[P, Any], /, *args: P.args, **kwargs: P.kwargs
) -> "Sequence[MessageInfo]": ...
@overload
def assert_published(
    queue: Queue | AsyncQueue,
    /,
    *,
    kind: str | None = None,
    channel: str | None = None,
    payload: Any = _ANY,
    count: int | None = None,
) -> "Sequence[MessageInfo]": ...
def assert_published(queue: Any, /, *args: Any, **options: Any) -> "Sequence[MessageInfo]":
    """Asserts that such messages have not ended yet: ``count`` of them, or at least one. Answers
    them. A ``payload`` of bytes or text is compared as it is, any other as JSON.

    ``queue`` is a Queue, or an AsyncQueue, beside which a Queue is opened for the answer.
    Of a task: calls with these arguments, or any calls if none are given; with those options that
    ``using`` names (queue, channel, key, priority).

    >>> assert_published(queue, kind="send_receipt", payload={"order": 9182}, count=1)
    >>> assert_published(send_receipt.using(channel="tenant-42"), Order(9182), copy=True)
    """
    if isinstance(queue, TaskView):
        found = published(queue, *args, **options)
        with _client(queue) as client:
            there = _listed(client, queue.queue or client.name)
        assert found, f"there is no such call of {queue.kind}: {there}"
        return found
    with _beside(queue) as client:
        return _assert_published(client, *args, **options)


@overload
def published(task: TaskView[..., Any], /) -> "list[MessageInfo]": ...
@overload
def published(
    task: TaskView[P, Any], /, *args: P.args, **kwargs: P.kwargs
) -> "list[MessageInfo]": ...
def published(task: TaskView[..., Any], /, *args: Any, **kwargs: Any) -> "list[MessageInfo]":
    """The calls of a task with these arguments that have not ended yet, or all of its calls if none
    are given.

    >>> assert len(published(send_receipt, Order(9182))) == 1
    """
    wanted = task.message(*args, **kwargs) if args or kwargs else None
    with _client(task) as client:
        name = task.queue or client.name
        return [
            message
            for message in client.messages(queue=name, kind=task.kind, limit=10_000)
            if wanted is None or _is_call(message, client.payload(message.id), wanted)
        ]


def _is_call(message: "MessageInfo", data: bytes | None, wanted: NewMessage) -> bool:
    """With the arguments and the options of ``wanted``, as far as it has any."""
    return (
        wanted.channel in (None, message.channel)
        and wanted.key in (None, message.key)
        and wanted.priority in (0, message.priority)
        and message.content_type == wanted.content_type
        and (data == wanted.payload or _holds(data, _value(wanted)))
    )


def _value(wanted: NewMessage) -> Any:
    return as_published(wanted.payload, wanted.content_type or JSON)


@contextmanager
def _client(task: TaskView[..., Any]) -> Iterator[Queue]:
    """The task's own, or one beside its AsyncQueue."""
    with _beside(task.client) as client:
        yield client


@contextmanager
def _beside(client: Any) -> Iterator[Queue]:
    if not isinstance(client, AsyncQueue):
        yield client
        return
    if client._address.database[1] == MEMORY:
        raise InvalidOption("only the AsyncQueue itself sees its database in memory: use a file")
    with twin(Queue, client) as beside:
        yield beside


def _assert_published(
    queue: Queue,
    *,
    kind: str | None = None,
    channel: str | None = None,
    payload: Any = _ANY,
    count: int | None = None,
) -> "Sequence[MessageInfo]":
    found = [
        message
        for message in queue.messages(queue=queue.name, kind=kind, channel=channel, limit=10_000)
        if payload is _ANY or _holds(queue.payload(message.id), payload)
    ]
    good = bool(found) if count is None else len(found) == count
    wanted = "at least one" if count is None else str(count)
    assert good, f"{wanted} expected, {len(found)} found: {_listed(queue, queue.name)}"
    return found


def _holds(data: bytes | None, payload: Any) -> bool:
    """None is the payload of a message that ended meanwhile."""
    if data is None:
        return False
    if isinstance(payload, str | bytes | bytearray | memoryview):
        return data == encode(payload)[0]
    try:
        return bool(decode_json(data) == payload)
    except DecodeError:  # another message, of text or bytes
        return False


def _listed(queue: Queue, name: str) -> str:
    there = [f"{m.id} {m.kind!r} of {m.channel!r}" for m in queue.messages(queue=name)]
    return ", ".join(there) or "the queue is empty"
