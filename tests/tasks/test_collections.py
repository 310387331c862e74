"""Tasks that are declared before there is a client, or without their functions."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import pytest

from laneway import AsyncQueue, Message, Queue, Tasks, Worker
from laneway.errors import InvalidCall, InvalidName, InvalidOption, InvalidSchedule
from laneway.testing import assert_published, published


@dataclass
class Order:
    id: int


@dataclass
class Invoice:
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
    with pytest.raises(InvalidCall, match="5 is not an Order"):
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


def test_the_queue_of_a_task_goes_with_it(queue: Queue, tmp_path: Path) -> None:
    """Each handler counts what arrives; nothing is left in any queue."""
    url, seen = f"sqlite:///{tmp_path}/queue.db", []
    orders, mail = Queue(url, name="orders"), AsyncQueue(url, name="mail")
    main, other, nested, tasks = Worker(queue), Worker(orders), Tasks(), Tasks()

    def note(n: int) -> None:
        seen.append(n)

    of_main = main.task("of_main")(note)
    of_other = other.task("of_other")(note)
    of_nested = nested.task("of_nested")(note)
    elsewhere = nested.task("elsewhere", queue="files")(note)
    of_mail = tasks.task("of_mail")(note)
    tasks.bind(mail, Queue(url, name="mail"))
    other.include(nested)
    main.include(other, tasks)
    main.include(tasks)  # once more changes nothing
    assert sorted(main.queues) == ["default", "files", "mail", "orders"]
    assert main.check() == []
    for number, task in enumerate([of_main, of_other, of_nested, elsewhere, of_mail]):
        task.publish(number)
    main.run(until_empty=True)
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert not any(n.waiting for n in queue.stats())


def test_an_included_worker_keeps_the_queues_that_it_names(queue: Queue) -> None:
    main, other = Worker(queue), Worker(queue, queues=["a", "b"])
    main.task("one")(lambda n: None)
    other.task("two")(lambda n: None)
    main.include(other)
    assert sorted(main.queues) == ["a", "b", "default"]
    main.override(queues=["c"])
    assert main.queues == ("c",)


def test_tasks_that_are_bound_to_none_publish_through_the_last_worker(
    queue: Queue, tmp_path: Path
) -> None:
    """As in a test suite, where each test has a database of its own."""
    tasks, seen = Tasks(), []
    send = tasks.task("send")(lambda n: seen.append(n))
    first, second = Worker(Queue(f"sqlite:///{tmp_path}/gone.db")), Worker(queue)
    first.include(tasks)
    second.include(tasks)
    send.publish(1)
    second.run(until_empty=True)
    assert seen == [1]
    tasks.bind(queue)
    assert send.client is queue


def test_tasks_of_another_database_are_refused(queue: Queue, tmp_path: Path) -> None:
    other = Queue(f"sqlite:///{tmp_path}/other.db")
    tasks = Tasks()
    tasks.task("send")(lambda n: None)
    worker = Worker(queue)
    worker.include(tasks)
    tasks.bind(other)
    refusal = r"the tasks send are published to sqlite:///.*other\.db, schema laneway, which this"
    assert [problem for problem in worker.check() if re.search(refusal, problem)]
    with pytest.raises(InvalidOption, match=refusal):
        worker.run(until_empty=True)
    tasks.bind(queue)  # as each test of a suite does
    assert worker.check() == []


def _module(name: str) -> Any:
    """One with a function "send", as in a file of its own."""
    module = ModuleType(name)
    code = "def send(order): return __name__"
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def test_two_modules_with_a_function_of_one_name(queue: Queue, tmp_path: Path) -> None:
    """Two workers, one for each module, would take each other's messages."""
    mail, jobs, again, same = (Tasks() for _ in range(4))
    url = f"sqlite:///{tmp_path}/queue.db"
    mail.task(_module("shop.mail").send)
    mail.bind(queue)
    refusal = (
        "two tasks of kind 'send' are published to the queue 'default': shop.jobs.send and "
        "shop.mail.send; give one of them a kind or a queue of its own"
    )
    jobs.task(_module("shop.jobs").send)
    for client in (queue, Queue(url), AsyncQueue(url)):
        with pytest.raises(InvalidOption, match=refusal):
            jobs.bind(client)
    with pytest.raises(InvalidOption, match=refusal):
        Worker(Queue(url)).task(_module("shop.jobs").send)
    jobs.bind(Queue(url, name="jobs"))
    jobs.bind(Queue(url, schema="other"))
    again.bind(queue)
    again.task("shop.jobs.send")(_module("shop.jobs").send)
    again.task(queue="jobs")(_module("shop.jobs").send)
    same.bind(queue)
    same.task(_module("shop.mail").send)  # the same file, imported under two names
    mail.bind(Queue(f"sqlite:///{tmp_path}/other.db"))
    del again, same, jobs
    Worker(queue).task(_module("shop.jobs").send)  # the other one is published elsewhere now


def test_databases_in_memory_are_apart() -> None:
    with Queue("sqlite://") as one, Queue("sqlite://") as other:
        mail = Worker(one).task(_module("shop.mail").send)
        jobs = Worker(other).task(_module("shop.jobs").send)
        assert (mail.client, jobs.client) == (one, other)


def test_a_declared_task_fits_the_one_that_it_names(queue: Queue) -> None:
    """As far as both are known in one process."""
    worker = Worker(queue)

    @worker.task
    def send(order: Order, copy: bool = False) -> None: ...

    @worker.task
    def count(n: float) -> None: ...

    @worker.task
    def look(message: Message) -> None: ...

    def declared(*what: Any) -> None:
        tasks = Tasks()
        tasks.bind(queue)
        tasks.declare(*what)

    class Orders:
        @dataclass
        class Order:  # the producer's own copy
            id: int

    class Call(TypedDict):
        id: int

    def of(function: Callable[..., None], name: str) -> Callable[..., None]:
        function.__name__ = name
        return function

    for fits in (
        ("send", Order),
        ("send", Orders.Order),
        ("send", Call),
        ("send", dict),
        ("send", dict[str, Any]),
        ("send", bytes),
        ("send", Order | Invoice),
        ("send",),
        ("count", int),
        ("look", Invoice),
        (of(lambda order, copy: None, "send"),),
    ):
        declared(*fits)

    def days(order: Order, days: int) -> None: ...
    def copies(order: Order, copy: str) -> None: ...
    def bare(copy: bool, days: int) -> None: ...

    for wrong, text in (
        (("send", Invoice), "which takes Order, not Invoice"),
        (("send", str), "which takes Order, not str"),
        (("count", str), "which takes float, not str"),
        ((of(days, "send"),), "which has no parameter 'days'"),
        ((of(copies, "send"),), "whose 'copy' takes bool, not str"),
        ((of(bare, "send"),), "which needs 'order'"),
    ):
        with pytest.raises(InvalidOption, match=rf"one that is declared does not .*, {text}; giv"):
            declared(*wrong)
