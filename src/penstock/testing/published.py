"""What waits in a queue, as a test expects it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import DecodeError
from penstock.payload import decode_json, encode

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
    them. A ``payload`` of bytes or text is compared as it is, any other as JSON.

    >>> assert_published(queue, kind="send_receipt", payload={"order": 9182}, count=1)
    """
    found = [
        message
        for message in queue.messages(queue=queue.name, kind=kind, channel=channel, limit=10_000)
        if payload is _ANY or _holds(queue.payload(message.id), payload)
    ]
    good = bool(found) if count is None else len(found) == count
    wanted = "at least one" if count is None else str(count)
    assert good, f"{wanted} expected, {len(found)} found: {_listed(queue)}"
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


def _listed(queue: "Queue") -> str:
    there = [f"{m.id} {m.kind!r} of {m.channel!r}" for m in queue.messages(queue=queue.name)]
    return ", ".join(there) or "the queue is empty"
