"""What is wrong with a function is said when it is registered, not when messages come."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Union

import pytest

from laneway import (
    INJECTED,
    AsyncMessage,
    Constant,
    Exponential,
    Message,
    NoRetry,
    Queue,
    Tasks,
    Worker,
)
from laneway.errors import InvalidOption


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as queue:
        queue.install()
        yield queue


def sync_with_async(payload: int, message: AsyncMessage) -> None: ...
def sync_perhaps(payload: int, message: AsyncMessage | None = None) -> None: ...
def sync_by_text(payload: int, *, message: "AsyncMessage" = INJECTED) -> None: ...
async def async_with_sync(payload: int, message: Message) -> None: ...
async def async_perhaps(payload: int, message: Union[Message, None] = None) -> None: ...  # noqa: UP007


Registers = Callable[[Worker], Callable[[Any], object]]
WAYS: list[Registers] = [
    lambda worker: worker.task,
    lambda worker: worker.handler("kind"),
    lambda worker: worker.default_handler,
    lambda worker: Tasks().task,
]


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize(
    ("function", "gets"),
    [
        (sync_with_async, "a Message"),
        (sync_perhaps, "a Message"),
        (sync_by_text, "a Message"),
        (async_with_sync, "an AsyncMessage"),
        (async_perhaps, "an AsyncMessage"),
    ],
)
def test_the_message_of_the_other_world_is_refused(
    queue: Queue, way: int, function: Any, gets: str
) -> None:
    with pytest.raises(InvalidOption, match=rf"'message' is annotated as .*: it gets {gets}, so"):
        WAYS[way](Worker(queue))(function)


def test_so_is_that_of_handlers_in_processes_and_of_batches(queue: Queue) -> None:
    worker = Worker(queue)

    def threads(payloads: list[int], messages: list[AsyncMessage]) -> None: ...
    async def loop(payloads: list[int], messages: list[Message]) -> None: ...

    with pytest.raises(InvalidOption, match="it gets a Message"):
        worker.task(run="process")(sync_with_async)
    with pytest.raises(InvalidOption, match="it gets a Message"):
        worker.batch_task(threads)
    with pytest.raises(InvalidOption, match="it gets an AsyncMessage"):
        worker.batch_task(loop)


def test_injected_needs_an_annotation(queue: Queue) -> None:
    worker = Worker(queue)

    def bare(payload: int, message=INJECTED) -> None: ...  # type: ignore[no-untyped-def]
    def wrong(payload: int, message: int = INJECTED) -> None: ...
    def batch(payloads: list[int], messages=INJECTED) -> None: ...  # type: ignore[no-untyped-def]

    for register in (worker.task, worker.handler("kind"), Tasks().declare):
        for function in (bare, wrong):
            with pytest.raises(InvalidOption, match="message=INJECTED, and its annotation does"):
                register(function)
    with pytest.raises(InvalidOption, match="messages=INJECTED, and its annotation does"):
        worker.batch_task(batch)


def test_a_message_that_may_be_none_is_injected_too(queue: Queue) -> None:
    worker, seen = Worker(queue), []

    @worker.task
    def sync(payload: int, message: Message | None = None) -> None:
        seen.append(type(message).__name__)

    @worker.task
    async def loop(payload: int, message: AsyncMessage | None = None) -> None:
        seen.append(type(message).__name__)

    sync.publish(1)
    loop.publish(1)
    worker.run(until_empty=True)
    assert sorted(seen) == ["HandlerMessage", "ThreadHandlerMessage"]


def logged(function: Any) -> Any:
    """A decorator as many are written, without functools.wraps."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return call


def test_a_function_that_would_get_nothing_of_the_payload_is_refused(queue: Queue) -> None:
    """It was called without it, and the message "completed"."""

    def perhaps(order: int | None = None) -> None: ...
    def many(*orders: int) -> None: ...

    for function in (logged(perhaps), many):
        for way in WAYS:
            with pytest.raises(InvalidOption, match=r"has \*.*, which gets nothing of the payload"):
                way(Worker(queue))(function)
    worker, seen = Worker(queue), list[object]()

    @worker.handler
    def named(**fields: int) -> None:
        seen.append(fields)

    @worker.handler
    def first(fields: dict[str, int], *args: int, **more: int) -> None:
        seen.append((fields, args, more))

    @worker.handler
    def by_itself(message: Message, *args: int, **more: int) -> None:
        seen.append((message.payload, args, more))

    for kind in ("named", "first", "by_itself"):
        queue.publish({"a": 1}, kind=kind)
    queue.publish(None, kind="named")
    queue.publish(5, kind="named")
    worker.run(until_empty=True)
    assert sorted(map(str, seen)) == sorted(
        map(str, [{"a": 1}, ({"a": 1}, (), {}), (b'{"a":1}', (), {}), {}])
    )
    (letter,) = queue.dead_letters.list()
    assert letter.reason == "payload" and "takes its arguments as a JSON object" in str(
        letter.error
    )


class Mailer:
    def __init__(self) -> None:
        self.sent: list[int] = []

    def ping(self) -> None: ...
    def send(self, n: int) -> None:
        self.sent.append(n)

    @classmethod
    def make(cls, n: int) -> None: ...

    @staticmethod
    async def later(n: int, message: AsyncMessage) -> None: ...


def test_a_method_needs_its_object(queue: Queue) -> None:
    """``self`` would be the payload."""
    ways: list[Any] = [Worker(queue).task, Worker(queue).handler, Worker(queue).batch_task]
    for register in ways:
        for method in (Mailer.ping, Mailer.send):
            with pytest.raises(
                InvalidOption, match="is a method, and nobody would pass its 'self'"
            ):
                register(method)
    worker, mailer = Worker(queue), Mailer()
    worker.handler(mailer.send)
    worker.handler(Mailer.make)
    later: Any = Mailer.__dict__["later"]  # as a decorator above @staticmethod gets it
    worker.handler(later)
    for kind in ("send", "make", "later"):
        queue.publish(1, kind=kind)
    worker.run(until_empty=True)
    assert mailer.sent == [1] and not queue.dead_letters.list()


async def work(done: list[int], payload: int) -> None:
    await asyncio.sleep(0)
    done.append(payload)


def test_a_coroutine_that_nobody_awaits_is_an_error(queue: Queue) -> None:
    """A decorator made the function an ordinary one: its work was not done, and it "completed"."""
    worker, done = Worker(queue), list[int]()

    @worker.handler("thread", retry=Constant(every=0, attempts=1))
    def thread(payload: int) -> Any:
        return work(done, payload)

    @worker.handler("loop", retry=Constant(every=0, attempts=1))
    async def loop(payload: int) -> Any:
        return work(done, payload)

    for kind in ("thread", "loop"):
        queue.publish(1, kind=kind)
    worker.run(until_empty=True)
    assert not done
    letters = queue.dead_letters.list()
    assert sorted(letter.kind for letter in letters) == ["loop", "thread"]
    for letter in letters:
        assert letter.error is not None and "returned a coroutine: await it there" in letter.error


def test_a_number_is_how_often_it_is_tried_again(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exponential, "seconds", lambda self, attempt: 0.0)
    worker, runs = Worker(queue), list[str]()

    def fails(name: str) -> None:
        runs.append(name)
        raise ValueError("no")

    worker.task("twice", retry=2)(fails)
    worker.handler("never", retry=0)(fails)
    for kind in ("twice", "never"):
        queue.publish(kind, kind=kind)
    queue.publish("twice", kind="twice", max_attempts=1)
    worker.run(until_empty=True)
    assert sorted(runs) == ["never", *["twice"] * 4]
    for line in (
        "failed at attempt 1 of 3, retrying in 0 s",
        "failed at attempt 3 of 3, now a dead letter (attempts=3 of Exponential)",
        "failed at attempt 1 of 1, now a dead letter (attempts=1 of Exponential)",
        "failed at attempt 1 of 1, now a dead letter (max_attempts=1 of the message)",
    ):
        assert [one for one in caplog.messages if line in one], line
    for wrong in (-1, True, "5"):
        with pytest.raises(InvalidOption, match="the retry of"):
            worker.task(retry=wrong)(fails)  # type: ignore[arg-type]


def test_a_line_says_which_rule_gave_up(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(queue)

    def fails(n: int) -> None:
        raise ValueError("no")

    worker.handler("types", retry=Constant(give_up_on=(ValueError,)))(fails)
    worker.handler("age", retry=Constant(every=60, within=1))(fails)
    worker.handler("none", retry=NoRetry())(fails)
    for kind in ("types", "age", "none"):
        queue.publish(1, kind=kind)
    worker.run(until_empty=True)
    for rule in ("give_up_on of Constant", "within=1 of Constant", "NoRetry"):
        assert [line for line in caplog.messages if f"now a dead letter ({rule})" in line], rule


async def lingers(n: int) -> None:
    await asyncio.sleep(60)


def raises_its_own(n: int) -> None:
    raise TimeoutError


def test_the_error_of_a_timeout_says_so(queue: Queue) -> None:
    worker = Worker(queue)
    worker.handler(timeout=0.2, ack="reject")(lingers)
    worker.handler(timeout=60, ack="reject")(raises_its_own)
    for kind in ("lingers", "raises_its_own"):
        queue.publish(1, kind=kind)
    worker.run(until_empty=True)
    errors = {letter.kind: letter.error for letter in queue.dead_letters.list()}
    assert errors["lingers"] is not None and errors["raises_its_own"] is not None
    assert f"{__name__}.lingers took longer than its timeout of 0.2 s" in errors["lingers"]
    assert "took longer" not in errors["raises_its_own"]


def test_the_limits_of_a_task_may_depend_on_its_arguments(queue: Queue) -> None:
    tasks = Tasks()
    pay = tasks.task("pay", limits=lambda provider, n: [provider])(lambda provider, n: None)
    tasks.bind(queue)
    pay.publish("stripe", 1)
    pay.publish_many([pay.message("adyen", 2)])
    pay.using(limits=["other"]).publish("stripe", 3)
    assert sorted(tuple(message.limits) for message in queue.claim(10)) == [
        ("adyen",),
        ("other",),
        ("stripe",),
    ]
    wrong: Any = lambda provider, n: provider  # noqa: E731
    with pytest.raises(InvalidOption, match="limits is a list of names, not 'stripe'"):
        pay.using(limits=wrong).publish("stripe", 1)


def test_one_name_is_no_list_of_limits(queue: Queue) -> None:
    """Refused when the task is made, by types too."""
    for make in (Tasks().task, Worker(queue).task, Worker(queue).batch_task):
        with pytest.raises(InvalidOption, match="limits is a list of names, not 'stripe'"):
            make("pay", limits="stripe")  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match="limits is a list of names"):
        Tasks(limits="stripe")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="limits is a list of names"):
        queue.publish(1, limits="stripe")  # type: ignore[arg-type]


def test_one_kind_in_two_modules_is_refused_with_their_names(queue: Queue) -> None:
    mail, shop = Tasks(), Tasks()
    mail.task("send")(sync_task)
    shop.task("send")(work)
    worker = Worker(queue)
    worker.include(mail)
    with pytest.raises(
        InvalidOption, match=r"two handlers for kind 'send': .*sync_task and .*work; g"
    ):
        worker.include(shop)


def sync_task(n: int) -> None: ...
