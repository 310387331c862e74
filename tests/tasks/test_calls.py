"""Tasks: published calls, what they carry, and what is refused before anything is published."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import INJECTED, AsyncMessage, AsyncQueue, Message, Queue, Worker
from laneway.errors import InvalidCall, InvalidInput, InvalidOption, InvalidPayload
from laneway.payload import ARGUMENTS, JSON


@dataclass
class Order:
    id: int


class Session:
    """What no payload can be."""


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


@pytest.fixture
def worker(queue: Queue) -> Worker:
    return Worker(queue)


def test_a_call_is_published_and_run(queue: Queue, worker: Worker) -> None:
    seen: list[object] = []

    @worker.task
    def send_receipt(order: Order, copy: bool = False) -> None:
        seen.append((order, copy))

    @worker.task("reminder", timeout=5)
    async def send_reminder(order: Order, days: int) -> None:
        seen.append((order, days))

    assert worker.kinds == ["reminder", "send_receipt"]
    first = send_receipt.publish(Order(1))
    assert first.id is not None and not first.existing
    send_receipt.publish(Order(2), copy=True)
    send_receipt.publish(copy=True, order=Order(3))
    send_reminder.publish(Order(4), 7)
    worker.run(until_empty=True)
    assert seen.count((Order(1), False)) == 1
    assert sorted(map(str, seen)) == sorted(
        map(str, [(Order(1), False), (Order(2), True), (Order(3), True), (Order(4), 7)])
    )


def test_a_task_is_still_its_function(worker: Worker) -> None:
    @worker.task(queue="emails")
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @worker.task
    async def double(a: int) -> int:
        return 2 * a

    assert (add(1), add(1, b=2), asyncio.run(double(3))) == (2, 3, 6)
    assert (add.__name__, add.__doc__, add.kind, add.queue) == ("add", "Adds.", "add", "emails")


def test_what_a_call_carries(queue: Queue, worker: Worker) -> None:
    """The only required argument alone is the payload itself, so that functions may get more
    parameters with defaults, and other programs need not know any names."""

    @worker.task
    def one(order: Order) -> None: ...

    @worker.task
    def later_two(order: Order, copy: bool = False) -> None: ...

    @worker.task
    def two(order: Order, copy: bool) -> None: ...

    @worker.task
    def none() -> None: ...

    @worker.task
    def optional(day: date | None = None, full: bool = False) -> None: ...

    @worker.task
    def anything(first: int, **rest: int) -> None: ...

    @worker.task
    def text(name: str) -> None: ...

    order = {"id": 1}
    day = date(2026, 5, 1)
    for message, content_type, payload in (
        (one.message(Order(1)), JSON, order),
        (later_two.message(Order(1)), JSON, order),
        (later_two.message(Order(1), copy=False), ARGUMENTS, {"order": order, "copy": False}),
        (two.message(Order(1), True), ARGUMENTS, {"order": order, "copy": True}),
        (none.message(), JSON, None),
        (optional.message(), ARGUMENTS, {}),
        (optional.message(day), JSON, "2026-05-01"),
        (optional.message(None), ARGUMENTS, {"day": None}),
        (optional.message(full=True), ARGUMENTS, {"full": True}),
        (anything.message(1), JSON, 1),
        (anything.message(1, a=2), ARGUMENTS, {"first": 1, "a": 2}),
    ):
        assert (message.content_type, json.loads(message.payload)) == (content_type, payload)
    assert text.message("Anna").payload == b"Anna"

    @worker.task
    def number(n: int) -> None: ...

    @worker.task
    def moment(day: date) -> None: ...

    @worker.task
    def data(content: bytes) -> None: ...

    loose: Any = number
    for wrong in ("5", b"5"):
        with pytest.raises(InvalidCall, match=r"number: .* is not an int"):
            loose.message(wrong)
    assert moment.message(day).payload == b'"2026-05-01"'
    assert data.message(b"\xff").payload == b"\xff"


def test_what_other_programs_may_publish(queue: Queue, worker: Worker) -> None:
    seen: list[object] = []

    @worker.task
    def later_two(order: Order, copy: bool = False) -> None:
        seen.append((order.id, copy))

    @worker.task
    def two(order: Order, copy: bool) -> None:
        seen.append((order.id, copy))

    @worker.task
    def optional(pages: int = 3) -> None:
        seen.append(pages)

    queue.publish({"id": 1}, kind="later_two")
    named = {"order": {"id": 2}, "copy": True}
    queue.publish(named, kind="later_two", content_type="application/json;laneway=arguments")
    queue.publish({**named, "copy": False}, kind="two")
    queue.publish(None, kind="optional")
    queue.publish(5, kind="optional")
    worker.run(until_empty=True)
    assert sorted(map(str, seen)) == sorted(map(str, [(1, False), (2, True), (2, False), 3, 5]))


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("two", {"order": {"id": 1}}, "two needs 'copy'"),
        ("two", [1], "takes its arguments as a JSON object by name (order, copy)"),
        ("two", {"order": {"id": 1}, "copy": 5}, "copy: 5 is not a bool"),
        ("two", {"order": {"id": 1}, "copy": True, "cc": 1}, "has no parameter 'cc'"),
        ("later_two", {"order": {"id": 1}, "copy": True}, "publish it with the content type"),
    ],
)
def test_a_call_that_does_not_fit_is_a_dead_letter(
    queue: Queue, worker: Worker, kind: str, payload: Any, text: str
) -> None:
    @worker.task
    def two(order: Order, copy: bool) -> None: ...

    @worker.task
    def later_two(order: Order, copy: bool = False) -> None: ...

    queue.publish(payload, kind=kind)
    worker.run(until_empty=True)
    (letter,) = queue.dead_letters.list()
    assert letter.reason == "payload" and text in str(letter.error)


def test_a_wrong_call_publishes_nothing(queue: Queue, worker: Worker) -> None:
    @worker.task
    def send(order: Order, copy: bool = False, session: Session | None = None) -> None: ...

    call: Any = send
    for wrong, text in (
        (lambda: call.publish(), "send: missing a required argument: 'order'"),
        (lambda: call.publish(Order(1), cpoy=True), "no parameter 'cpoy': did you mean 'copy'"),
        (lambda: call.publish(Order(1), True, 3, 4), "too many positional arguments"),
        (lambda: call.publish(7), "7 is not an Order"),
        (lambda: call.publish(Order(1), copy="yes"), "copy: 'yes' is not a bool"),
        (
            lambda: call.publish_many([Order(1)]),
            "is not a call of send: make one with send.message",
        ),
    ):
        with pytest.raises(InvalidCall, match=text):
            wrong()  # type: ignore[no-untyped-call]
    assert issubclass(InvalidCall, TypeError) and issubclass(InvalidCall, InvalidInput)
    with pytest.raises(InvalidPayload):
        call.publish(object())
    with pytest.raises(InvalidOption, match="a task has no option chanel=: write channel="):
        call.using(chanel="a")
    assert queue.stats() == []


def test_what_the_worker_fills_is_no_part_of_the_call(queue: Queue, worker: Worker) -> None:
    seen: list[object] = []

    here = Session()

    @worker.task
    def send(message: Message, order: Order, /, session: Session = here, *, n: int = 0) -> None:
        seen.append((message.kind, order.id, type(session), n))

    @worker.task
    async def later(order: Order, message: AsyncMessage = INJECTED) -> None:
        seen.append((message.kind, order.id))

    call: Any = send
    call.publish(Order(1))
    call.publish(Order(2), n=5)
    later.publish(Order(3))
    worker.run(until_empty=True)
    assert sorted(map(str, seen)) == sorted(
        map(str, [("send", 1, Session, 0), ("send", 2, Session, 5), ("later", 3)])
    )
    for given in ({"session": Session()}, {"message": 1}):
        with pytest.raises(InvalidCall, match="it has no parameter"):
            call.publish(Order(1), **given)
    with pytest.raises(InvalidOption, match="nobody passed a message, so it has no 'channel'"):
        INJECTED.channel  # noqa: B018


def test_options_of_the_task_and_of_the_call(queue: Queue, worker: Worker) -> None:
    @worker.task(
        queue="emails",
        channel=lambda order, copy=False: f"tenant-{order.id}",
        key=lambda order, copy=False: f"receipt:{order.id}",
        priority=3,
        max_attempts=2,
        delay=60,
    )
    def send(order: Order, copy: bool = False) -> None: ...

    assert send.publish(Order(1)).id == send.publish(Order(1), copy=True).id
    send.using(channel="other", key="k", priority=5, delay=None, headers={"h": 1}).publish(Order(2))
    later = send.using(at=None).using(delay=timedelta(hours=1)).using(key=None)
    assert (later.kind, later.queue) == ("send", "emails")
    later.using(queue="slow").publish(Order(3))
    found = {m.channel: m for m in (*queue.messages(queue="emails"), *queue.messages(queue="slow"))}
    assert {m.kind for m in found.values()} == {"send"}
    first, other, third = found["tenant-1"], found["other"], found["tenant-3"]
    assert (first.key, first.priority, first.max_attempts, first.state) == (
        "receipt:1",
        3,
        2,
        "scheduled",
    )
    assert (other.key, other.priority, other.state) == ("k", 5, "waiting")
    assert other.headers["h"] == 1
    assert (third.key, third.queue, third.state) == (None, "slow", "scheduled")
    with pytest.raises(InvalidOption, match="the function that names the channel returned 5"):
        send.using(channel=lambda order: 5).publish(Order(1))  # type: ignore[arg-type,return-value]


def test_many_calls_at_once(queue: Queue, worker: Worker) -> None:
    @worker.task
    def count(n: int) -> None: ...

    @worker.task(queue="others")
    def other(n: int) -> None: ...

    results = count.publish_many(count.message(n) for n in range(5))
    assert len({result.id for result in results}) == 5
    queue.publish_many([count.using(channel="a").message(1), other.message(2)])
    assert {(stats.queue, stats.waiting) for stats in queue.stats()} == {
        ("default", 6),
        ("others", 1),
    }
    call: Any = count
    with pytest.raises(InvalidCall):
        call.publish_many([other.message(1)])


def test_in_the_callers_transaction(queue: Queue, worker: Worker, tmp_path: Path) -> None:
    import sqlite3

    @worker.task
    def count(n: int) -> None: ...

    with sqlite3.connect(tmp_path / "queue.db") as connection:
        count.using(connection=connection).publish(1)
        connection.rollback()
        count.using(connection=connection).publish(2)
    connection.close()
    assert [queue.payload(m.id) for m in queue.messages()] == [b"2"]


def test_sync_and_async_are_not_confused(queue: Queue, worker: Worker, tmp_path: Path) -> None:
    @worker.task
    def count(n: int) -> None: ...

    async def publish_in_a_loop() -> None:
        count.publish(1)

    with pytest.raises(InvalidCall, match=r"would block the event loop: write await count\.apub"):
        asyncio.run(publish_in_a_loop())
    with pytest.raises(
        InvalidCall, match=r"bound to a Queue: write count\.publish\(\), or bind an"
    ):
        asyncio.run(count.apublish(1))

    async def with_a_client_of_its_own() -> None:
        async with AsyncQueue(f"sqlite:///{tmp_path}/queue.db") as mine:
            await count.using(client=mine).apublish(1)
            await count.using(client=mine).apublish_many([count.message(2)])
            apart: Any = count.using(client=mine)
            with pytest.raises(InvalidCall, match="bound to an AsyncQueue: write await"):
                await asyncio.to_thread(apart.publish, 3)

    asyncio.run(with_a_client_of_its_own())
    assert [stats.waiting for stats in queue.stats()] == [2]


@pytest.mark.parametrize("client", [Queue, AsyncQueue])
def test_handlers_publish_tasks(queue: Queue, tmp_path: Path, client: Any) -> None:
    """Through the worker's own client, from threads and from the loop."""
    worker, seen = Worker(client(f"sqlite:///{tmp_path}/queue.db")), []

    @worker.task
    def in_thread(n: int) -> None:
        seen.append(n)
        if n:
            in_loop.publish(n - 1)

    @worker.task
    async def in_loop(n: int) -> None:
        seen.append(n)
        if n:
            await in_thread.apublish(n - 1)

    queue.publish(4, kind="in_thread")
    worker.run(until_empty=True)
    assert seen == [4, 3, 2, 1, 0]


def test_a_worker_serves_the_queues_of_its_tasks(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.task(queue="emails")
    def send(n: int) -> None:
        seen.append(n)

    assert list(worker.queues) == ["emails"]

    @worker.handler
    def other(n: int) -> None: ...

    assert list(worker.queues) == ["emails", "default"]
    send.publish(1)
    worker.run(until_empty=True)
    assert seen == [1]
    worker.override(queues=["a"])
    assert list(worker.queues) == ["a"]


def test_what_cannot_be_a_task(worker: Worker) -> None:
    def many(*orders: Order) -> None: ...

    def send(order: Order) -> None: ...

    def session(session: Session) -> None: ...

    def one_and_many(order: Order, *orders: Order) -> None: ...

    for function, text in (
        (many, r"has \*orders, which gets nothing of the payload: name the parameters, or"),
        (one_and_many, r"has \*orders: the arguments of a task travel by name; take a list"),
        (session, "can never be given its 'session'"),
    ):
        with pytest.raises(InvalidOption, match=text):
            worker.task(function)
    worker.task(send)
    with pytest.raises(InvalidOption, match="two handlers for kind 'send'"):
        worker.task(send)
    with pytest.raises(InvalidOption, match="a task has no option retries="):
        worker.task(retries=3)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="the queue is empty"):
        worker.task(queue="")
    assert worker.kinds == ["send"]
