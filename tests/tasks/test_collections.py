"""Tasks that are declared before there is a client, or without their functions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import AsyncQueue, Queue, Tasks, Worker
from laneway.errors import InvalidCall, InvalidName, InvalidOption, InvalidSchedule
from laneway.testing import assert_published, published


@dataclass
class Order:
    id: int


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


def test_tasks_are_bound_to_a_client_later(queue: Queue) -> None:
    tasks, seen = Tasks(queue="emails", priority=2), []

    @tasks.task(priority=4)
    def send(order: Order) -> None:
        seen.append(order.id)

    with pytest.raises(InvalidCall, match=r"^send has no client to publish through yet: bind its"):
        send.publish(Order(1))
    assert send.client is None
    tasks.bind(queue)
    send.publish(Order(1))
    (found,) = queue.messages(queue="emails")
    assert found.priority == 4
    worker = Worker(queue)
    worker.include(tasks)
    assert (worker.kinds, list(worker.queues)) == (["send"], ["emails"])
    worker.run(until_empty=True)
    assert seen == [1]
    with pytest.raises(InvalidOption, match="is neither a Queue nor an AsyncQueue"):
        tasks.bind("sqlite:///queue.db")


def test_one_worker_for_several_collections(queue: Queue, tmp_path: Path) -> None:
    mail, jobs, seen = Tasks(queue="emails"), Tasks(), []
    first, second = Worker(queue, concurrency=3), Worker(queue)
    second.on_start(lambda: seen.append("started"))

    @mail.task
    def send(n: int) -> None:
        seen.append(f"send {n}")
        count.publish(n)

    @second.handler
    def plain(n: int) -> None:
        seen.append(f"plain {n}")

    first.include(mail, second, jobs)

    @jobs.task  # after it was included, as of a module that is imported later
    def count(n: int) -> None:
        seen.append(f"count {n}")

    assert first.kinds == ["count", "plain", "send"]
    assert sorted(first.queues) == ["default", "emails"]
    send.publish(1)  # through the worker's client
    queue.publish(2, kind="plain")
    first.run(until_empty=True)
    assert seen[0] == "started" and sorted(seen[1:]) == ["count 1", "plain 2", "send 1"]
    again = Tasks()
    again.task("send")(lambda n: None)
    with pytest.raises(InvalidOption, match="two handlers for kind 'send'"):
        first.include(again)
    with pytest.raises(InvalidOption, match="different databases or schemas"):
        first.include(Worker(Queue(f"sqlite:///{tmp_path}/other.db")))


def test_a_task_without_its_function(queue: Queue) -> None:
    tasks = Tasks(queue="emails")
    send = tasks.declare("send_receipt", Order, channel="a")

    @tasks.declare
    def remind(order: Order, days: int = 3) -> None:
        """Of another program."""

    tasks.bind(queue)
    send.publish(Order(1))
    remind.publish(Order(2), days=5)
    found = {m.kind: json.loads(queue.payload(m.id) or b"") for m in queue.messages(queue="emails")}
    assert found == {"send_receipt": {"id": 1}, "remind": {"order": {"id": 2}, "days": 5}}
    anything: Any = send
    with pytest.raises(InvalidCall, match="5 is no Order"):
        anything.publish(5)
    with pytest.raises(InvalidCall, match="send_receipt is only declared here: publish it"):
        anything(Order(1))
    worker = Worker(queue)
    worker.include(tasks)
    assert worker.kinds == []
    with pytest.raises(InvalidOption, match="two tasks of kind 'send_receipt'"):
        tasks.declare("send_receipt", Order)
    assert [task.kind for task in tasks] == ["send_receipt", "remind"]
    assert len(tasks) == 2 and tasks["remind"] is remind
    with pytest.raises(InvalidName, match=r"no task of kind 'send_recipt': did you mean 'send_rec"):
        tasks["send_recipt"]


def test_schedules_take_tasks(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.task(queue="reports", priority=3)
    def report(pages: int = 3, day: str = "today") -> None:
        seen.append((pages, day))

    every = timedelta(hours=1)
    queue.schedule("plain", report, every=every)
    queue.schedule("more", report.message(7, day="monday"), every=every, channel="a", priority=5)
    found = {schedule.name: schedule for schedule in queue.schedules.list(queue="reports")}
    assert {(s.kind, s.channel, s.priority) for s in found.values()} == {
        ("report", "default", 3),
        ("report", "a", 5),
    }
    for name in found:
        queue.schedules.run(name, queue="reports")
    worker.run(until_empty=True)
    assert sorted(seen) == [(3, "today"), (7, "monday")]
    with pytest.raises(InvalidSchedule, match="the message has delay=: a schedule says when"):
        queue.schedule("late", report.using(delay=5).message(), every=every)

    @worker.task
    def needs(n: int) -> None: ...

    with pytest.raises(InvalidCall, match="missing a required argument: 'n'"):
        queue.schedule("never", needs, every=every)


def test_topics_take_tasks(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.task(queue="receipts")
    def send(order: Order) -> None:
        seen.append(("send", order.id))

    @worker.task
    def count(order: Order) -> None:
        seen.append(("count", order.id))

    orders = queue.topic("orders")
    orders.subscribe(send)
    orders.subscribe(count, channel="all")
    assert {(s.queue, s.kind) for s in orders.subscriptions()} == {
        ("receipts", "send"),
        ("default", "count"),
    }
    orders.publish({"id": 1})
    orders.publish_many([send.message(Order(2))])
    worker.run(until_empty=True)
    assert sorted(seen) == [("count", 1), ("count", 2), ("send", 1), ("send", 2)]
    assert orders.unsubscribe(send)


def test_tests_take_tasks(queue: Queue, tmp_path: Path) -> None:
    worker = Worker(queue)

    @worker.task(queue="emails")
    def send(order: Order, copy: bool = False) -> None: ...

    assert published(send) == []
    with pytest.raises(AssertionError, match="there is no such call of send: the queue is empty"):
        assert_published(send)
    send.using(channel="a").publish(Order(1), copy=True)
    send.publish(Order(2))
    assert len(assert_published(send)) == 2
    assert len(assert_published(send, Order(1), copy=True)) == 1
    assert len(published(send.using(channel="a"), Order(1), copy=True)) == 1
    assert published(send.using(channel="b"), Order(1), copy=True) == []
    with pytest.raises(AssertionError, match="there is no such call of send: 1 'send' of 'a', 2 "):
        assert_published(send, Order(1))
    with pytest.raises(InvalidCall):
        published(send, 5)  # type: ignore[call-overload]
    apart = send.using(client=AsyncQueue(f"sqlite:///{tmp_path}/queue.db"))
    assert len(published(apart, Order(2))) == 1
