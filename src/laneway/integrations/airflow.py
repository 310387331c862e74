"""Airflow: a message queue provider, whose triggers claim messages, and an operator that publishes.

    AssetWatcher("orders", trigger=MessageQueueTrigger(scheme="laneway", queues=["orders"]))

A message is claimed, becomes an event, and is completed when Airflow has stored the event. So a
triggerer that dies between the two loses nothing: the lease ends and the event comes again. Events
come at least once; their ``id`` tells.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider
from airflow.sdk import BaseOperator
from airflow.sdk.bases.hook import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from laneway import AsyncMessage, AsyncQueue, Queue
from laneway.durations import Duration, check_duration
from laneway.errors import LeaseLost
from laneway.model import KeyScope

try:
    from airflow.triggers.shared_stream import SharedStreamProducer
except ImportError:  # before Airflow 3.3
    SharedStreamProducer = object

_log = logging.getLogger("laneway.airflow")

CONNECTION = "laneway_default"
_SCHEMES = {"postgres": "postgresql", "mysqldb": "mysql"}
STORED_WITHIN = 15.0
"""Seconds after which an event is taken to be stored, where Airflow does not say so: its triggerer
stores what has come about once a second."""


class LanewayMessageQueueProvider(BaseMessageQueueProvider):  # type: ignore[misc]
    """``MessageQueueTrigger(scheme="laneway", …)`` takes the arguments of LanewayTrigger. As a
    queue's address: ``laneway://connection id/queue``."""

    scheme = "laneway"

    def queue_matches(self, queue: str) -> bool:
        return urlsplit(queue).scheme == self.scheme

    def trigger_class(self) -> "type[LanewayTrigger]":
        return LanewayTrigger

    def trigger_kwargs(self, queue: str, **kwargs: Any) -> dict[str, Any]:
        address = urlsplit(queue)
        name = address.path.strip("/")
        return {
            "conn_id": address.netloc or CONNECTION,
            **({"queues": [name]} if name else {}),
        }


class LanewayTrigger(BaseEventTrigger):  # type: ignore[misc]
    """Claims messages, each of which becomes an event.

    ``conn_id`` is Airflow's connection to the database (PostgreSQL, MySQL, SQLite), or one that has
    the ``url`` and ``schema`` of the queue among its extras. ``queues`` and ``kinds`` are what is
    claimed, the queue ``default`` of all kinds unless they say otherwise. A message that Airflow
    has not stored when its ``lease`` (seconds) ends, becomes an event again. ``poll`` is how many
    seconds lie between two looks at an empty queue.
    """

    def __init__(
        self,
        conn_id: str = CONNECTION,
        queues: Sequence[str] = ("default",),
        kinds: Sequence[str] | None = None,
        lease: float = 300.0,
        poll: float = 1.0,
    ) -> None:
        super().__init__()
        self.conn_id, self.lease, self.poll = conn_id, lease, poll
        self.queues = [queues] if isinstance(queues, str) else list(queues)
        self.kinds = None if kinds is None else list(kinds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("conn_id", "queues", "kinds", "lease", "poll")
        return (
            f"{LanewayTrigger.__module__}.LanewayTrigger",
            {name: getattr(self, name) for name in names},
        )

    def shared_stream_key(self) -> Hashable:
        """By which the triggerer of Airflow 3.3 and newer tells when an event was stored."""
        kinds = None if self.kinds is None else tuple(self.kinds)
        return "laneway", self.conn_id, tuple(self.queues), kinds

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> "ClaimedStream":
        return ClaimedStream(cls(**kwargs))

    async def filter_shared_stream(self, shared_stream: Any) -> AsyncIterator[TriggerEvent]:
        async for event in shared_stream:
            yield TriggerEvent(event)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Where nobody tells whether an event was stored: a message is completed STORED_WITHIN
        after it was handed over. Stopped before, its lease ends and it comes again."""
        stream = ClaimedStream(self)
        settling: set[asyncio.Task[None]] = set()
        try:
            async for event, message in stream.open_stream():
                yield TriggerEvent(event)
                task = asyncio.create_task(_complete_later(message))
                settling.add(task)
                task.add_done_callback(settling.discard)
        finally:
            for task in [*settling]:
                task.cancel()
            await stream.aclose()


class ClaimedStream(SharedStreamProducer):  # type: ignore[misc]
    """The messages of a trigger, one after the other, and their ends."""

    def __init__(self, trigger: LanewayTrigger) -> None:
        self._trigger = trigger
        self._queue: AsyncQueue | None = None

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], AsyncMessage]]:
        wanted = self._trigger
        address = await asyncio.to_thread(_address, wanted.conn_id)
        queue = self._queue = AsyncQueue(**address, lease=wanted.lease)
        while True:
            claim = await queue.claim(queues=wanted.queues, kinds=wanted.kinds)
            for message in claim:
                yield _event(message), message
            if not claim:
                wait = timedelta(seconds=wanted.poll)
                wait = wait if claim.look_again is None else min(wait, claim.look_again)
                await asyncio.sleep(wait.total_seconds())

    def get_advance_lane(self, broker_payload: AsyncMessage) -> Hashable:
        """None waits for another."""
        return broker_payload.id

    async def advance(self, batch: Sequence[Any]) -> None:
        for message, outcome in batch:
            if outcome.failed:
                with suppress(LeaseLost):
                    await message.give_back()
            else:
                await _complete(message)

    async def aclose(self) -> None:
        if self._queue is not None:
            await self._queue.close()


class PublishOperator(BaseOperator):  # type: ignore[misc]
    """Publishes one message and returns its id.

    The key of the message is the task instance's, unless ``key`` is given: for ``key_window`` a
    task that Airflow runs again publishes nothing new.
    """

    template_fields = ("payload", "channel", "queue_name", "kind", "key")

    def __init__(
        self,
        *,
        payload: object,
        channel: str = "default",
        queue_name: str = "default",
        kind: str = "",
        key: str | None = None,
        key_scope: KeyScope = "kind",
        key_window: Duration = timedelta(days=1),
        conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.payload, self.channel, self.queue_name = payload, channel, queue_name
        self.kind, self.key, self.conn_id = kind, key, conn_id
        self.key_scope = key_scope
        self.key_window = check_duration("key_window", key_window)

    def execute(self, context: Any) -> int | None:
        with Queue(**_address(self.conn_id)) as queue:
            published = queue.publish(
                self.payload,
                channel=self.channel,
                queue=self.queue_name,
                kind=self.kind,
                key=self.key or _key_of(context["ti"]),
                key_scope=self.key_scope,
                key_window=self.key_window,
            )
            return published.id


def _key_of(instance: Any) -> str:
    parts = (instance.dag_id, instance.run_id, instance.task_id, str(instance.map_index))
    return "/".join(parts)


def _address(conn_id: str) -> dict[str, Any]:
    """Where Airflow's connection leads, as arguments of a client."""
    connection = BaseHook.get_connection(conn_id)
    extra = dict(connection.extra_dejson)
    schema = {"schema": extra.pop("laneway_schema")} if "laneway_schema" in extra else {}
    if "url" in extra:
        return {"url": extra["url"], **schema}
    scheme, rest = connection.get_uri().split("://", 1)
    return {"url": f"{_SCHEMES.get(scheme, scheme)}://{rest}", **schema}


def _event(message: AsyncMessage) -> dict[str, Any]:
    """What can be stored as JSON."""
    return {
        "id": message.id,
        "queue": message.queue,
        "channel": message.channel,
        "kind": message.kind,
        "key": message.key,
        "attempt": message.attempt,
        "headers": message.headers,
        "payload": _payload(message),
    }


def _payload(message: AsyncMessage) -> Any:
    """As JSON, else as text, else as base64."""
    for read in (message.json, message.text):
        with suppress(Exception):
            return read()
    return base64.b64encode(message.payload).decode()


async def _complete_later(message: AsyncMessage) -> None:
    await asyncio.sleep(STORED_WITHIN)
    await _complete(message)


async def _complete(message: AsyncMessage) -> None:
    try:
        await message.complete()
    except LeaseLost:
        _log.warning("message %s was stored after its lease had ended: it comes again", message.id)
