"""publish and publish_many, and what they answer; topics."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from laneway.client.shared.draft import (
    TaskTarget,
    accepted,
    draft_all,
    draft_each,
    draft_new,
    is_bulk,
    refusal,
)
from laneway.contract import BATCH
from laneway.durations import Duration
from laneway.event import MessageEnd
from laneway.model import Draft, KeyScope, Names, NewMessage, OnDuplicate, Published
from laneway.names import check_kind, check_name
from laneway.spelling import explains_mistakes
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy

from .database import AsyncDatabase
from .events import AsyncListenVerbs
from .waits import check_loop

# A topic: one publish, a copy for each subscribed queue.


@explains_mistakes
class AsyncTopic:
    """What several queues can subscribe to; it need not exist before.

    >>> orders = queue.topic("orders")
    >>> await orders.subscribe("receipts")
    >>> await orders.subscribe("statistics", channel="all", kind="count_order")
    >>> await orders.publish({"order": 9182}, channel="tenant-42")
    """

    def __init__(self, database: AsyncDatabase, name: str) -> None:
        self._database = database
        self.name = name

    async def subscribe(
        self,
        queue: str | TaskTarget[...] | None = None,
        *,
        channel: str | None = None,
        kind: str | None = None,
        connection: object = None,
    ) -> None:
        """Gives a queue (by default the client's) a copy of what is published from now on. A task
        stands for its queue and its kind.

        ``channel`` and ``kind`` replace those of the published message in its copies. Safe to
        repeat; replaces the whole subscription.
        """
        if isinstance(queue, TaskTarget):
            kind, queue = queue.kind if kind is None else kind, queue.queue
        target = self._database.options.queue if queue is None else check_name("queue", queue)
        wanted = Subscription(
            self.name,
            target,
            None if channel is None else check_name("channel", channel),
            None if kind is None else check_kind(kind),
        )
        await self._database.run(self._database.engine.topics.subscribe(wanted), connection)

    async def unsubscribe(
        self, queue: str | TaskTarget[...] | None = None, *, connection: object = None
    ) -> bool:
        """Stops copies for this queue; returns whether it was subscribed. Its copies stay."""
        if isinstance(queue, TaskTarget):
            queue = queue.queue
        target = self._database.options.queue if queue is None else check_name("queue", queue)
        return await self._database.run(
            self._database.engine.topics.unsubscribe(self.name, target), connection
        )

    async def subscriptions(self) -> Sequence[Subscription]:
        """Who gets a copy, by queue."""
        return await self._database.run(self._database.engine.topics.subscriptions(self.name))

    async def publish(
        self,
        payload: Any,
        *,
        channel: str = "default",
        kind: str = "",
        key: str | None = None,
        key_scope: KeyScope = "kind",
        key_window: Duration | None = None,
        on_duplicate: OnDuplicate = "keep",
        debounce_for: Duration | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        at: datetime | None = None,
        expires_in: Duration | None = None,
        expires_at: datetime | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        keep_result: Duration | None = None,
        limits: Names | None = None,
        connection: object = None,
    ) -> Sequence[TopicCopy]:
        """Publishes a copy into each subscribed queue, all or none; returns one TopicCopy each.

        An empty result means that nobody is subscribed. A ``key`` applies in each queue separately.
        The other arguments are those of ``queue.publish``.

        >>> [copy.queue for copy in await queue.topic("orders").publish({"order": 9182})]
        """
        check_loop("publish", connection)
        message = NewMessage(
            payload,
            channel,
            None,
            kind,
            key,
            key_window,
            headers,
            priority,
            delay,
            at,
            expires_in,
            expires_at,
            max_attempts,
            content_type,
            keep_result,
            on_duplicate,
            debounce_for,
            limits,
            key_scope,
        )
        options = self._database.options
        draft = draft_new(message, options.queue, channel, options.max_payload)
        return (await self._publish([draft], connection))[0]

    async def publish_many(
        self,
        messages: Iterable[Any],
        *,
        channel: str = "default",
        connection: object = None,
    ) -> Sequence[Sequence[TopicCopy]]:
        """Publishes copies of many messages, all or none; returns the copies of each.

        >>> await queue.topic("orders").publish_many([{"order": 1}, {"order": 2}])
        """
        check_loop("publish_many", connection)
        options = self._database.options
        drafts = draft_all(messages, options.queue, channel, options.max_payload)
        return await self._publish(drafts, connection) if drafts else []

    async def _publish(self, drafts: Sequence[Draft], connection: object) -> list[list[TopicCopy]]:
        plan = self._database.engine.topics.publish_topic(self.name, drafts)
        several = len(drafts) > TOPIC_BATCH or any(draft.mode is not None for draft in drafts)
        rounds = await self._database.run(plan, connection, atomic=several)
        results = [copy for copies in rounds for copy in copies]
        for copy in results:
            if copy.refused:
                where = f"a channel of queue {copy.queue!r}"
                raise refusal(where, results, copy.status == "closed")
        return rounds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


# What publish answers: the id and the status, and a way to wait for the end.

T = TypeVar("T")
R = TypeVar("R", covariant=True)
_AS_THE_TASK_SAYS: Any = object()


@explains_mistakes
class AsyncPublishedMessage(Published, Generic[R]):
    """What happened to a message that was published; an ``id`` and a ``status``, and a tuple of the
    two. ``R`` is what the function of a task returns, Any if no task was published.

    >>> published = await queue.publish({"order": 9182}, keep_result=timedelta(hours=1))
    >>> receipt = await published.result(Receipt, timeout=30)
    """

    _waiting: AsyncListenVerbs
    _returned: Any = Any

    if TYPE_CHECKING:

        @property
        def id(self) -> int:
            """A single publish that is refused raises."""

    @classmethod
    def of(cls, published: Published, waiting: AsyncListenVerbs) -> Self:
        message = cls._make(published)
        message._waiting = waiting
        return message

    async def wait(self, timeout: Duration | None = None) -> MessageEnd:
        """Waits until the message has ended; see ``queue.wait``."""
        return await self._waiting.wait(self.id, timeout)

    @overload
    async def result(self, *, timeout: Duration | None = None) -> R: ...
    @overload
    async def result(self, wanted: type[T], *, timeout: Duration | None = None) -> T: ...
    @overload
    async def result(self, wanted: Any, *, timeout: Duration | None = None) -> Any: ...
    async def result(
        self, wanted: Any = _AS_THE_TASK_SAYS, *, timeout: Duration | None = None
    ) -> Any:
        """Waits for what the handler returns: as ``wanted``, or, of a task, as its function is
        annotated; see ``queue.result``."""
        if wanted is _AS_THE_TASK_SAYS:
            wanted = self._returned
        return await self._waiting.result(self.id, wanted, timeout=timeout)

    def __repr__(self) -> str:
        return f"Published(id={self.id!r}, status={self.status!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are plain: a client stays in its process."""
        return Published, tuple(self)


@explains_mistakes
class AsyncPublishVerbs(AsyncListenVerbs):
    """A part of the client: publish, publish_many and topics."""

    async def publish(
        self,
        payload: Any,
        *,
        channel: str = "default",
        queue: str | None = None,
        kind: str = "",
        key: str | None = None,
        key_scope: KeyScope = "kind",
        key_window: Duration | None = None,
        on_duplicate: OnDuplicate = "keep",
        debounce_for: Duration | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        at: datetime | None = None,
        expires_in: Duration | None = None,
        expires_at: datetime | None = None,
        max_attempts: int | None = None,
        content_type: str | None = None,
        keep_result: Duration | None = None,
        limits: Names | None = None,
        connection: object = None,
    ) -> AsyncPublishedMessage[Any]:
        """Publishes one message.

        The payload is bytes, text, or anything that is JSON. ``priority`` is 0 to 200, higher
        first.
        While a message of this channel and kind has the same ``key``, and for ``key_window`` after
        it has ended, nothing is published and the status is "existing", with that one's id;
        ``key_scope`` makes that all kinds of the "channel", or the whole "queue". With
        ``on_duplicate="replace"`` a waiting message gets the new content instead ("replaced"), and
        behind a running one the new message waits until that has ended; with "debounce" the due
        time also moves to ``delay`` from now, up to ``debounce_for`` after the first publish (ten
        delays, if left out). What its handler returns is kept for ``keep_result``, for whoever asks
        the answer's ``result()``. It starts only if all of the shared ``limits`` that it names, up
        to four, let it (see ``queue.limits``).
        With ``connection`` the message belongs to the caller's transaction. Raises BacklogFull or
        ChannelClosed, which leave that transaction as it was.

        >>> await queue.publish({"order": 9182}, channel="tenant-42", key="receipt:9182")
        """
        check_loop("publish", connection)
        message = NewMessage(
            payload,
            channel,
            queue,
            kind,
            key,
            key_window,
            headers,
            priority,
            delay,
            at,
            expires_in,
            expires_at,
            max_attempts,
            content_type,
            keep_result,
            on_duplicate,
            debounce_for,
            limits,
            key_scope,
        )
        options = self._database.options
        draft = draft_new(message, options.queue, channel, options.max_payload)
        published = (await self._publish([draft], connection))[0]
        return AsyncPublishedMessage.of(published, self)

    async def publish_many(
        self,
        messages: Iterable[Any],
        *,
        channel: str = "default",
        queue: str | None = None,
        connection: object = None,
    ) -> list[Published]:
        """Publishes many messages or none: up to 10,000 in one round trip, more in one transaction,
        on PostgreSQL by COPY.

        A message is a NewMessage or just a payload; ``channel`` and ``queue`` apply where it names
        none. If a channel refuses some, raises BacklogFull or ChannelClosed, whose ``results`` say
        what happened to each; the others are published.

        >>> await queue.publish_many([{"order": 1}, NewMessage({"order": 2}, delay=hour)])
        """
        check_loop("publish_many", connection)
        database, options = self._database, self._database.options
        target = options.queue if queue is None else queue
        if connection is not None or not is_bulk(messages):
            drafts = draft_all(messages, target, channel, options.max_payload)
            return await self._publish(drafts, connection)
        given = list(messages)  # the caller's may change while they are drafted

        def drafted(some: Sequence[Any]) -> Iterator[Draft]:
            return draft_each(some, target, channel, options.max_payload)

        plan = database.engine.messages.publish_bulk(drafted(given), len(given))
        results = await database.run(plan, atomic=True)
        return accepted(results, lambda number: next(drafted(given[number:])))

    def topic(self, name: str) -> AsyncTopic:
        """A topic, to publish to, subscribe to or look at; it need not exist.

        >>> await queue.topic("orders").publish({"order": 9182}, channel="tenant-42")
        """
        return AsyncTopic(self._database, check_name("topic", name))

    async def subscriptions(self) -> Sequence[Subscription]:
        """All subscriptions of all topics, by topic and queue."""
        return await self._database.run(self._database.engine.topics.subscriptions(None))

    async def _publish(self, drafts: Sequence[Draft], connection: object) -> list[Published]:
        database, publish = self._database, self._database.engine.messages.publish
        if any(draft.mode is not None for draft in drafts):
            # Several statements: only one message needs no transaction around them.
            results = await database.run(publish(drafts), connection, atomic=len(drafts) > 1)
        else:
            keyed = any(draft.key is not None for draft in drafts)
            if len(drafts) < BATCH or keyed or connection is not None:
                results = await database.run_items(publish, drafts, connection, waits=keyed)
            else:
                plan = database.engine.messages.publish_bulk(drafts, len(drafts))
                results = await database.run(plan, atomic=True)
        return accepted(results, drafts.__getitem__)
