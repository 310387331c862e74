"""Decorators of the worker, with and without parentheses, and how wrong uses are answered."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from laneway import Queue, Worker
from laneway.errors import InvalidInput, InvalidOption


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


@pytest.fixture
def worker(queue: Queue) -> Worker:
    return Worker(queue)


def test_a_handler_without_parentheses_has_its_function_name_as_kind(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.handler
    def send_receipt(payload: int) -> None:
        seen.append(payload)

    @worker.handler
    async def send_reminder(payload: int) -> None:
        seen.append(-payload)

    assert send_receipt.__name__ == "send_receipt"  # still the function
    assert worker.kinds == ["send_receipt", "send_reminder"]
    queue.publish(1, kind="send_receipt")
    queue.publish(2, kind="send_reminder")
    worker.run(until_empty=True)
    assert sorted(seen) == [-2, 1]


@pytest.mark.parametrize("options", [{}, {"timeout": 5}, {"ack": "reject"}])
def test_parentheses_without_a_kind_mean_the_same(worker: Worker, options: Any) -> None:
    def send_receipt(payload: int) -> None: ...

    assert worker.handler(**options)(send_receipt) is send_receipt
    assert worker.kinds == ["send_receipt"]


def test_a_kind_wins_over_the_name(worker: Worker) -> None:
    @worker.handler("receipt")
    def send_receipt(payload: int) -> None: ...

    @worker.handler(kind="reminder")
    def send_reminder(payload: int) -> None: ...

    assert worker.kinds == ["receipt", "reminder"]


def test_the_default_handler_takes_what_no_other_does(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.handler
    def named(payload: int) -> None: ...

    @worker.default_handler
    def everything_else(payload: int) -> None:
        seen.append(payload)

    assert worker.kinds == ["named"]
    queue.publish(1, kind="named")
    queue.publish(2, kind="other")
    queue.publish(3)
    worker.run(until_empty=True)
    assert sorted(seen) == [2, 3]
    with pytest.raises(InvalidOption, match=r"^two default handlers: .*everything_else and "):
        worker.default_handler(timeout=3)(named)


def test_hooks_and_middleware_work_with_and_without_parentheses(queue: Queue) -> None:
    worker, called = Worker(queue), []

    def note(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    for decorate in (worker.on_start, worker.on_stop, worker.on_error):
        hook = note(decorate.__name__)
        assert decorate(hook) is hook
        assert decorate()(hook) is hook

    @worker.middleware
    async def outer(message: Any, call: Any) -> object:
        called.append("outer")
        return await call()

    @worker.middleware()
    async def inner(message: Any, call: Any) -> object:
        called.append("inner")
        return await call()

    assert (outer.__name__, inner.__name__) == ("outer", "inner")

    @worker.handler(ack="reject")
    def fails(payload: int) -> None:
        raise ValueError

    queue.publish(1, kind="fails")
    worker.run(until_empty=True)
    hooks = ["on_error", "on_error", "on_stop", "on_stop"]
    assert called == ["on_start", "on_start", "outer", "inner", *hooks]


class Receipt:
    def __call__(self, payload: int) -> None: ...


def generates(payload: int) -> Iterator[int]:
    yield payload


async def generates_async(payload: int) -> AsyncIterator[int]:
    yield payload


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Receipt, "handler: Receipt is a class; give a function"),
        ("a text", "handler: 'a text' is not a function"),
        (None, "handler: None is not a function"),
        (Receipt(), "the handler is <.*Receipt object .*: wrap it in a function, with def"),
        (partial(print, 1), "the handler is functools.partial.*: wrap it in a function, with def"),
        (generates, "generates is a generator and would never run: it must not yield"),
        (generates_async, "generates_async is a generator and would never run"),
    ],
)
def test_what_is_no_function_is_refused(worker: Worker, given: Any, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        worker.handler("kind")(given)
    if callable(given):
        with pytest.raises(InvalidOption, match=text):
            worker.handler(given)
    assert worker.kinds == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (5, "the kind must be str, not int"),
        ("a\0b", "NUL character"),
        ("k" * 300, "has 300 bytes, 255 are allowed"),
    ],
)
def test_what_is_no_kind_is_refused(worker: Worker, kind: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        worker.handler(kind)


def test_a_lambda_needs_a_kind(worker: Worker) -> None:
    with pytest.raises(InvalidOption, match="a lambda has no name to use as the kind"):
        worker.handler(lambda payload: None)
    worker.handler("kind")(lambda payload: None)
    assert worker.kinds == ["kind"]


def test_a_second_handler_of_a_kind_is_refused(worker: Worker) -> None:
    @worker.handler
    def send(payload: int) -> None: ...

    def again(payload: int) -> None: ...

    with pytest.raises(InvalidOption, match=r"two handlers for kind 'send': .*send and .*again; "):
        worker.handler("send")(again)


@pytest.mark.parametrize("name", ["middleware", "on_start", "on_stop", "on_error"])
def test_hooks_and_middleware_refuse_what_is_no_function(worker: Worker, name: str) -> None:
    decorate = getattr(worker, name)
    for given, text in ((Receipt, "Receipt is a class; give a function"), ("x", "not a function")):
        with pytest.raises(InvalidOption, match=f"^{name}: .*{text}$"):
            decorate(given)
        with pytest.raises(InvalidOption, match=f"^{name}: .*{text}$"):
            decorate()(given)


def test_a_run_has_limits_of_its_own(queue: Queue) -> None:
    worker, seen = Worker(queue, concurrency=1, max_messages=7), []

    @worker.default_handler
    def handle(payload: int) -> None:
        seen.append(payload)

    queue.publish_many(range(20))
    worker.run(max_messages=3)
    assert len(seen) == 3
    worker.run()
    assert len(seen) == 10
    worker.run(max_messages=1000, max_runtime=timedelta(seconds=0.2))
    with pytest.raises(InvalidInput, match="max_messages"):
        worker.run(max_messages=0)
    with pytest.raises(InvalidInput, match="max_runtime"):
        worker.run(max_runtime=timedelta(-1))
