"""What mypy says to right and wrong calls of tasks."""

import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent
# A line with a comment must be refused, and with these words.
_CODE = """\
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from laneway import INJECTED, AsyncMessage, Published, Queue, Task, Tasks, Worker
from laneway.testing import assert_published

queue = Queue("sqlite://")
worker = Worker(queue)
tasks = Tasks(queue="emails")


@dataclass
class Order:
    id: int


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

send.publish(1)  # "int"; expected "Order"
send.publish()  # Missing positional argument "order"
send.publish(Order(1), cpoy=True)  # Unexpected keyword argument "cpoy"
send.publish(Order(1), copy="yes")  # expected "bool"
send.message("x")  # expected "Order"
send.using(delya=5)  # did you mean "delay"
send.using(delay="soon")  # "str"; expected
send.using(channel="a").publish(Order(1), 2)  # expected "bool"
declared.publish(5)  # expected "Order"
elsewhere.publish(Order(1))  # Missing positional argument "days"
worker.task(timeout="soon")  # No overload variant
assert_published(send, 5)  # No overload variant
count.publish([Order(1)])  # expected "Order"
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
    lines = enumerate(_CODE.splitlines(), 1)
    expected = {number: line.split("  # ")[1] for number, line in lines if "  # " in line}
    assert set(said) == set(expected), done.stdout + done.stderr
    for number, words in expected.items():
        assert words in said[number]
