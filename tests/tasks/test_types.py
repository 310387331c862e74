"""What mypy says to right and wrong calls of tasks."""

import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent
# A line with a comment must be refused, and with these words; a "reveals" is what mypy infers.
_CODE = """\
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from laneway import (
    INJECTED, AsyncMessage, AsyncQueue, Defer, Fail, Message, NewMessage, Published, Queue, Task,
    Tasks, Worker,
)
from laneway.client import AsyncPublishedMessage, PublishedMessage
from laneway.testing import assert_published

queue = Queue("sqlite://")
worker = Worker(queue)
tasks = Tasks(queue="emails")


@dataclass
class Order:
    id: int


@dataclass
class Receipt:
    number: int


@worker.task
def send(order: Order, copy: bool = False) -> int:
    return order.id


@worker.task(queue="emails", timeout=30, channel=lambda order: str(order.id))
async def later(order: Order, message: AsyncMessage = INJECTED) -> int:
    return order.id


@tasks.task("named")
def other(n: int) -> None: ...


declared = tasks.declare("declared", Order)


@tasks.declare
def elsewhere(order: Order, days: int) -> None: ...


@tasks.declare
async def charge(order: Order) -> Receipt:
    raise NotImplementedError


@worker.task
def perhaps(order: Order) -> Receipt | None | Defer:
    return None


@worker.task
async def fails(order: Order) -> Receipt | Fail:
    return Fail("no")


@worker.task
def anything(n: int) -> Any: ...


@worker.task
def merge(title: str = "all", message: Message = INJECTED) -> dict[str, int]:
    return {}


@worker.batch_task(size=500, wait=0.2)
async def count(clicks: list[Order], messages: list[AsyncMessage]) -> None: ...


count.publish(Order(1))
count.using(channel="a").message(Order(1))
published: Published = send.publish(Order(1), copy=True)
number: int = send(Order(1))
running: Coroutine[Any, Any, int] = later(Order(1))
kept: Task[[int], None] = other
send.using(channel="a", delay=5, key=None).publish(Order(1))
send.publish_many([send.message(Order(1)), send.message(order=Order(2), copy=True)])
later.publish(Order(1))
declared.publish(Order(1))
elsewhere.publish(Order(1), days=3)
assert_published(send)
assert_published(send, Order(1), copy=True)
assert_published(queue, kind="send", count=1)
queue.schedule("nightly", send.message(Order(1)), every=60)
queue.topic("orders").subscribe(send)
tasks.task(limits=["stripe"], channel="a")
tasks.task(limits=lambda order: [f"of {order.id}"])

with queue.flow("import") as flow:
    pages = [flow.add(send, Order(1)), flow.add(send, Order(1), copy=True)]
    merged = flow.add(merge, after=pages)
    flow.add(merge, "some")
    flow.add(send.message(Order(1), copy=True), after=merged, when="ended")
    flow.add(later.using(delay=5), Order(1))
    flow.add(count, Order(1))
    flow.add({"page": 1}, after=merged, priority=5)
    flow.add(Order(1), kind="send", after=merged)
    flow.add(send, 1)  # No overload variant
    flow.add(send, Order(1), cpoy=True)  # Unexpected keyword argument "cpoy"
    flow.add(elsewhere, Order(1))  # No overload variant
    flow.add(send, after=merged)  # expected "CalledWithoutArguments"
    flow.add(send, Order(1), after=merged)  # Unexpected keyword argument "after"
    flow.add(send.message(5), after=merged)  # expected "Order"
    flow.add({"page": 1}, prioriy=5)  # No overload variant
    flow.add(merge, after="x")  # expected "AddedNode | int


async def results(other: AsyncQueue) -> None:
    async with other.flow("import") as flow:
        flow.add(later, Order(1))
        flow.add(later, 1)  # No overload variant
    answer = await later.apublish(Order(1))
    reveal_type(await answer.result(timeout=5))  # reveals int.
    reveal_type(await answer.result(str))  # reveals str.
    reveal_type(await (await charge.apublish(Order(1))).result())  # reveals Receipt.
    reveal_type(await (await send.using(channel="a").apublish(Order(1))).result())  # reveals int.
    reveal_type(await (await fails.apublish(Order(1))).result())  # reveals Receipt.
    reveal_type(await (await declared.apublish(Order(1))).result(Receipt))  # reveals Receipt.
    reveal_type(await (await other.publish(1)).result())  # reveals Any.
    named: AsyncPublishedMessage[int] = answer
    wrong: AsyncPublishedMessage[str] = answer  # Incompatible types
    await later.apublish(5)  # No overload variant


answer: PublishedMessage[int] = send.publish(Order(1))
id: int = answer.id
reveal_type(answer.result(timeout=5))  # reveals int.
reveal_type(later.publish(Order(1)).result())  # reveals int.
reveal_type(perhaps.publish(Order(1)).result())  # reveals Receipt | None.
reveal_type(merge.publish().result())  # reveals dict[str, int].
reveal_type(anything.publish(1).result())  # reveals Any.
reveal_type(anything.publish(1).result(Receipt))  # reveals Receipt.
reveal_type(declared.publish(Order(1)).result())  # reveals Any.
reveal_type(queue.publish(1).result())  # reveals Any.
reveal_type(queue.publish(1).result(Receipt))  # reveals Receipt.
reveal_type(queue.result(answer, Receipt))  # reveals Receipt.

anything.publish("x")  # No overload variant
tasks.task(limits="stripe")  # No overload variant
send.using(limits="stripe")  # expected "list[str]
queue.publish(1, limits="stripe")  # expected "list[str]
NewMessage(1, limits="stripe")  # expected "list[str]
tasks.task(limits=lambda order: "stripe")  # (got "str", expected "list[str]
send.publish(1)  # "int"; expected "Order"
send.publish()  # Missing positional argument "order"
send.publish(Order(1), cpoy=True)  # Unexpected keyword argument "cpoy"
send.publish(Order(1), copy="yes")  # expected "bool"
send.message("x")  # expected "Order"
send.using(delya=5)  # did you mean "delay"
send.using(delay="soon")  # "str"; expected
send.using(channel="a").publish(Order(1), 2)  # expected "bool"
declared.publish(5)  # No overload variant
elsewhere.publish(Order(1))  # Missing positional argument "days"
worker.task(timeout="soon")  # No overload variant
assert_published(send, 5)  # No overload variant
count.publish([Order(1)])  # No overload variant
count([5], [])  # expected "Order"
wrong: str = send(Order(1))  # expression has type "int"
"""


def test_type_checkers_know_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(_CODE)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--hide-error-context",
    ]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "calls.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(_ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    said = {}
    for number, text in re.findall(r"^calls\.py:(\d+): error: (.*)$", done.stdout, re.M):
        said[int(number)] = text
    for number, text in re.findall(
        r'^calls\.py:(\d+): note: Revealed.* "(.*)"$', done.stdout, re.M
    ):
        said[int(number)] = f"reveals {text.replace('calls.', '')}."
    lines = enumerate(_CODE.splitlines(), 1)
    expected = {number: line.split("  # ")[1] for number, line in lines if "  # " in line}
    assert set(said) == set(expected), done.stdout + done.stderr
    wrong = {
        number: (words, said[number])
        for number, words in expected.items()
        if words not in said[number]
    }
    assert not wrong
