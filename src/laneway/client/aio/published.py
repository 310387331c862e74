"""What publish answers: the id and the status, and a way to wait for the end."""

from typing import Any, Self, TypeVar, overload

from laneway.durations import Duration
from laneway.event import MessageEnd
from laneway.model import Published

from .listen import AsyncListenVerbs

T = TypeVar("T")


class AsyncPublishedMessage(Published):
    """What happened to a message that was published; an ``id`` and a ``status``, and a tuple of the
    two.

    >>> published = await queue.publish({"order": 9182}, keep_result=timedelta(hours=1))
    >>> receipt = await published.result(Receipt, timeout=30)
    """

    _waiting: AsyncListenVerbs

    @classmethod
    def of(cls, published: Published, waiting: AsyncListenVerbs) -> Self:
        message = cls._make(published)
        message._waiting = waiting
        return message

    async def wait(self, timeout: Duration | None = None) -> MessageEnd:  # noqa: ASYNC109
        """Waits until the message has ended; see ``queue.wait``."""
        assert self.id is not None  # publish raises if it was refused
        return await self._waiting.wait(self.id, timeout)

    @overload
    async def result(self, wanted: type[T], *, timeout: Duration | None = None) -> T: ...  # noqa: ASYNC109
    @overload
    async def result(self, wanted: Any = Any, *, timeout: Duration | None = None) -> Any: ...  # noqa: ASYNC109
    async def result(self, wanted: Any = Any, *, timeout: Duration | None = None) -> Any:  # noqa: ASYNC109
        """Waits for what the handler returns; see ``queue.result``."""
        assert self.id is not None
        return await self._waiting.result(self.id, wanted, timeout=timeout)

    def __repr__(self) -> str:
        return f"Published(id={self.id!r}, status={self.status!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are plain: a client stays in its process."""
        return Published, tuple(self)
