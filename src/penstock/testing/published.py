"""What waits in a queue, as a test expects it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.payload import decode_json

if TYPE_CHECKING:
    from penstock.client.sync_queue import Queue
    from penstock.insight import MessageInfo

_ANY: Any = object()


def assert_published(
    queue: "Queue",
    *,
    kind: str | None = None,
    channel: str | None = None,
    payload: Any = _ANY,
    count: int | None = None,
) -> "Sequence[MessageInfo]":
    """Asserts that such messages have not ended yet: ``count`` of them, or at least one. Answers
    them. A ``payload`` is compared as JSON.

    >>> assert_published(queue, kind="send_receipt", payload={"order": 9182}, count=1)
    """
    found = [
        message
        for message in queue.messages(queue=queue.name, kind=kind, channel=channel, limit=10_000)
        if payload is _ANY or _payload(queue, message.id) == payload
    ]
    good = bool(found) if count is None else len(found) == count
    wanted = "at least one" if count is None else str(count)
    assert good, f"{wanted} expected, {len(found)} found: {_listed(queue)}"
    return found


def _payload(queue: "Queue", id: int) -> Any:
    data = queue.payload(id)
    return _ANY if data is None else decode_json(data)


def _listed(queue: "Queue") -> str:
    there = [f"{m.id} {m.kind!r} of {m.channel!r}" for m in queue.messages(queue=queue.name)]
    return ", ".join(there) or "the queue is empty"
