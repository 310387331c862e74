"""What is refused before anything is sent: no server runs at this address."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pydantic
import pytest

from laneway import AsyncQueue, NewMessage, Policy, Published, Queue, install_sql
from laneway.errors import (
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
)

NOWHERE = "postgresql://user:secret@127.0.0.1:1/x"
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
SECOND = timedelta(seconds=1)

queue = Queue(NOWHERE, max_payload=100)


class Reading(pydantic.BaseModel):
    """Iterable, by fields."""

    value: int


BAD_PUBLISHES: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (InvalidName, "channel is empty", {"channel": ""}),
    (InvalidName, "256 bytes", {"channel": "é" * 128}),
    (InvalidName, "NUL", {"queue": "a\0"}),
    (InvalidName, "surrogate", {"key": "\ud800"}),
    (InvalidName, "must be str, not int", {"kind": 5}),
    (InvalidName, "key is empty", {"key": ""}),
    (InvalidTime, "time zone", {"at": NAIVE}),
    (InvalidTime, "time zone", {"expires_at": NAIVE}),
    (InvalidTime, "negative", {"delay": -SECOND}),
    (InvalidTime, "give a number of seconds or a timedelta", {"delay": "5"}),
    (InvalidTime, "exclude", {"delay": SECOND, "at": datetime.now(UTC)}),
    (InvalidTime, "exclude", {"expires_in": SECOND, "expires_at": datetime.now(UTC)}),
    (InvalidTime, "century", {"expires_in": timedelta.max}),
    (InvalidOption, "priority is 201", {"priority": 201}),
    (InvalidOption, "int, not bool", {"priority": True}),
    (InvalidOption, "max_attempts is 0", {"max_attempts": 0}),
    (InvalidOption, "give a key", {"key_window": SECOND}),
    (InvalidOption, "content type", {"content_type": "a\nb"}),
    (InvalidPayload, "keys are text", {"headers": {1: 2}}),
    (InvalidPayload, "mapping", {"headers": ["a"]}),
    (InvalidPayload, "NUL", {"headers": {"a": "b\\\0"}}),
]


@pytest.mark.parametrize(("error", "text", "options"), BAD_PUBLISHES)
def test_publish_refuses(error: type[Exception], text: str, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=text):
        queue.publish(1, **options)
    if "channel" not in options:
        with pytest.raises(error, match=text):
            queue.publish_many([1, NewMessage(2, **options)])


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="chanel"):
        queue.publish(1, chanel="a")  # type: ignore[call-arg]


BAD_CALLS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (PayloadTooLarge, "101 bytes, 100 are allowed", lambda: queue.publish("x" * 101)),
    (InvalidOption, "not one dict: use publish", lambda: queue.publish_many({"order": 1})),
    (InvalidOption, "not one str: use publish", lambda: queue.publish_many("abc")),
    (InvalidOption, "not one bytes", lambda: queue.publish_many(b"abc")),
    (InvalidOption, "not one NewMessage", lambda: queue.publish_many(NewMessage(1))),  # type: ignore[arg-type]
    (InvalidOption, "not one Reading", lambda: queue.publish_many(Reading(value=1))),
    (InvalidOption, "not one Published", lambda: queue.publish_many(Published(1, "published"))),
    (InvalidOption, "not one int", lambda: queue.publish_many(5)),  # type: ignore[arg-type]
    (InvalidOption, "not one dict", lambda: queue.topic("t").publish_many({"order": 1})),
    (InvalidPayload, "to publish_many", lambda: queue.publish(NewMessage(1))),
    (InvalidPayload, "to publish_many", lambda: queue.publish([NewMessage(1)])),
    (InvalidPayload, "to publish_many", lambda: queue.topic("t").publish(NewMessage(1))),
    (InvalidOption, "limit is 0", lambda: queue.claim(0)),
    (InvalidOption, "limit is 10001", lambda: queue.claim(10_001)),
    (InvalidOption, "at least one", lambda: queue.claim(queues=[])),
    (InvalidOption, "not the text", lambda: queue.claim(queues="emails")),
    (InvalidTime, "1 second and 1 day", lambda: queue.claim(lease=timedelta(0))),
    (InvalidTime, "1 second and 1 day", lambda: queue.claim(lease=timedelta(days=2))),
    (InvalidOption, "a message id is 0", lambda: queue.cancel([0])),
    (InvalidOption, "a message id must be", lambda: queue.cancel(["1"])),  # type: ignore[list-item]
    (InvalidName, "channel", lambda: queue.channel("")),
    (InvalidOption, "concurrency is 0", lambda: queue.channel("a").limit(concurrency=0)),
    (InvalidOption, "give a rate", lambda: queue.channel("a").limit(rate=None, burst=1)),
    (InvalidOption, "give a rate", lambda: queue.channel("a").set_policy(Policy(burst=1))),
    (InvalidOption, "changes nothing", lambda: queue.channel("a").limit()),
    (InvalidOption, "weight is 0", lambda: queue.channel("a").limit(weight=0)),
    (InvalidOption, "rate is nan", lambda: queue.channel("a").limit(rate=float("nan"))),
    (InvalidOption, "must be a Policy", lambda: queue.set_policies({"a": None})),  # type: ignore[dict-item]
    (InvalidOption, "history is", lambda: queue.configure(history="some")),  # type: ignore[arg-type]
    (InvalidTime, "time zone", lambda: queue.dead_letters.list(since=NAIVE)),
    (InvalidName, "schema name", lambda: install_sql("x" * 64)),
    (InvalidName, "schema name", lambda: Queue(NOWHERE, schema="")),
    (InvalidName, "NUL", lambda: Queue(NOWHERE, schema="a\0")),
    (InvalidTime, "lease", lambda: Queue(NOWHERE, lease=timedelta(0))),
    (InvalidOption, "max_payload", lambda: Queue(NOWHERE, max_payload=0)),
    (InvalidOption, "pool_size", lambda: Queue(NOWHERE, pool_size=0)),
    (InvalidOption, "not a database URL", lambda: Queue("redis://u:secret@host")),
    (InvalidOption, "not a database URL", lambda: Queue(None)),  # type: ignore[arg-type]
    (InvalidOption, "not a database URL", lambda: AsyncQueue("")),
]


@pytest.mark.parametrize(("error", "text", "call"), BAD_CALLS)
def test_calls_refuse(error: type[Exception], text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=text) as raised:
        call()
    assert isinstance(raised.value, InvalidInput) and isinstance(raised.value, ValueError)
    assert "secret" not in str(raised.value)


def test_policy_defaults() -> None:
    assert Policy() == Policy(None, None, None, None, 1.0, False, False)
    assert "secret" not in repr(queue) and "user:***@" in repr(queue)
