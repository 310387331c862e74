"""Whatever keeps a handler from its work is red, however it ends."""

import asyncio
import sys
import time
from typing import Any

import pytest

from laneway import Constant, Defer, Fail, Worker
from laneway.integrations import otel
from laneway.integrations.otel import process, traced, tracing
from laneway.worker.handlers import Run
from tests.client.worlds import run_async
from tests.otel.recording import Recording, attributes, is_red, recording
from tests.otel.test_traces import opened
from tests.place import Place
from tests.worker import in_process
from tests.worker.test_worker import client, until

NEVER = Constant(every=0, attempts=1)


async def sleeps(payload: int) -> None:
    await asyncio.sleep(60)


def sleeps_in_a_thread(payload: int) -> None:
    time.sleep(1)


async def exits(payload: int) -> None:
    sys.exit(3)


def exits_in_a_thread(payload: int) -> None:
    sys.exit(3)


async def cancels_itself(payload: int) -> None:
    raise asyncio.CancelledError


async def raises(payload: int) -> None:
    raise ValueError("no")


async def fails(payload: int) -> None:
    raise Fail("as planned")


async def returns_failure(payload: int) -> Fail:
    return Fail("as planned", error=KeyError("k"))


async def tries_again(payload: int) -> Defer:
    return Defer(3600, reason="not yet")


async def goes_on(payload: int) -> Defer:
    return Defer(3600)


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


async def raises_odd(payload: int) -> None:
    raise Odd


async def cannot_read(payload: dict[str, str]) -> None: ...


HOW_THEY_END: dict[str, tuple[Any, dict[str, Any], str | None]] = {
    "raises": (raises, {}, "ValueError"),
    "raises what has no text": (raises_odd, {}, f"{__name__}.Odd"),
    "times out": (sleeps, {"timeout": 0.1}, "TimeoutError"),
    "times out in a thread": (sleeps_in_a_thread, {"timeout": 0.1}, "TimeoutError"),
    "exits": (exits, {}, "SystemExit"),
    "exits in a thread": (exits_in_a_thread, {}, "SystemExit"),
    "cancels itself": (cancels_itself, {}, "asyncio.exceptions.CancelledError"),
    "ends its process": (in_process.exits, {"run": "process"}, "laneway.errors.HandlerDied"),
    "breaks its process": (in_process.segfault, {"run": "process"}, "laneway.errors.HandlerDied"),
    "fails": (fails, {}, "laneway.Fail"),
    "returns a failure": (returns_failure, {}, "KeyError"),
    "is to be tried again": (tries_again, {}, "laneway.Defer"),
    "goes on later": (goes_on, {}, None),
    "raises after its ack": (raises, {"ack": "first"}, "ValueError"),
    "cannot read": (cannot_read, {}, "laneway.worker.job.UndecodablePayload"),
}


def test_the_span_of_a_handler_that_failed_is_red(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        worker = Worker(queue)
        for kind, (function, options, _) in HOW_THEY_END.items():
            wanted = options if "ack" in options else {"retry": NEVER, **options}
            worker.handler(kind, **wanted)(function)
            queue.publish(1, kind=kind)
        worker.run(until_empty=True)
        spans = {
            attributes(span)["messaging.laneway.kind"]: span
            for span in found.spans("process default")
        }
        measured = {
            point["messaging.laneway.kind"]: point.get("error.type")
            for point, _ in found.points("messaging.process.duration")
        }
        assert not process._processed and not otel._observer._open, "nothing is kept of them"
    expected = {kind: end[2] for kind, end in HOW_THEY_END.items()}
    assert {kind: attributes(span).get("error.type") for kind, span in spans.items()} == expected
    assert measured == expected
    for kind, span in spans.items():
        assert is_red(span) == (expected[kind] is not None), kind


@pytest.mark.parametrize("run", ["async", "process"])
@run_async
async def test_a_handler_that_a_shutdown_interrupts_is_red(place: Place, run: Run) -> None:
    with recording() as found:
        async with client(place) as queue:
            worker = Worker(queue, grace=0)
            worker.handler("job", run="process" if run == "process" else None)(
                in_process.sleeps if run == "process" else sleeps
            )
            await queue.publish(1, kind="job")
            serving = asyncio.create_task(worker.serve())
            await until(lambda: bool(process._processed), 30)
            await asyncio.sleep(0.3)
            worker.stop()
            await asyncio.wait_for(serving, 40)
        span = found.span("process default")
        settle = found.span("give_back default")
    assert is_red(span) and span.status.description == "interrupted: shutdown"
    assert not is_red(settle)


def test_metrics_of_the_conventions(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        worker = Worker(queue)

        @worker.handler("good")
        async def good(payload: int) -> None: ...

        @worker.handler("bad", ack="reject")
        async def bad(payload: int) -> None:
            raise ValueError

        queue.publish_many([1, 2, 3], queue="bulk")
        for kind in ("good", "good", "bad"):
            queue.publish(1, kind=kind)
        worker.run(until_empty=True)
        queue.claim(2, queues=["bulk"])
        _check_metrics(found)


def _check_metrics(found: Recording) -> None:
    sent = {
        point["messaging.destination.name"]: n
        for point, n in found.points("messaging.client.sent.messages")
    }
    assert sent == {"bulk": 3, "default": 3}
    consumed = {
        (point["messaging.destination.name"], point["messaging.operation.name"]): n
        for point, n in found.points("messaging.client.consumed.messages")
    }
    assert consumed == {("default", "process"): 3, ("bulk", "receive"): 2}
    process = {
        (point["messaging.laneway.kind"], point.get("error.type")): n
        for point, n in found.points("messaging.process.duration")
    }
    assert process == {("good", None): 2, ("bad", "ValueError"): 1}
    operations = {
        (point["messaging.operation.name"], point["messaging.operation.type"]): n
        for point, n in found.points("messaging.client.operation.duration")
    }
    assert operations[("complete", "settle")] == 2 and operations[("fail", "settle")] == 1
    assert operations[("receive", "receive")] == 1
    for point, _ in found.points("messaging.process.duration"):
        assert "messaging.laneway.channel" not in point, "channels are too many for a metric"


def test_the_middleware_alone_records_handlers_and_keeps_nothing(place: Place) -> None:
    with recording() as found, opened(place) as queue:
        otel.uninstrument()
        worker = Worker(queue)
        worker.middleware(tracing)
        worker.default_handler(fails)
        queue.publish(1, headers=traced())
        worker.run(until_empty=True)
        assert [span.name for span in found.spans()] == ["process default"]
        assert not process._processed
