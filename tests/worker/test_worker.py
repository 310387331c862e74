"""The worker in this process: handlers, outcomes, policies."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import (
    AsyncMessage,
    AsyncQueue,
    Constant,
    Defer,
    Fail,
    FailedAttempt,
    LeaseLost,
    Message,
    Queue,
    Worker,
)
from laneway.engines.sqlite import SqliteEngine
from laneway.errors import InvalidInput, InvalidOption, SchemaMissing
from laneway.worker.execute import unhandled
from tests.client.worlds import run_async
from tests.place import Place

SOON = Constant(every=0.01)


@dataclass
class Order:
    id: int


@asynccontextmanager
async def client(place: Place, **options: Any) -> AsyncIterator[AsyncQueue]:
    async with AsyncQueue(place.url, schema=place.schema, **options) as queue:
        await queue.install()
        yield queue


async def outcomes(queue: AsyncQueue, id: int | None) -> list[str]:
    assert id is not None
    return [entry.outcome for entry in await queue.history(id)]


async def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for what other tasks and threads bring about."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@run_async
async def test_each_kind_goes_to_its_handler_with_what_it_asks_for(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        seen: dict[str, Any] = {}

        @worker.handler("typed")
        async def typed(order: Order, message: AsyncMessage) -> None:
            seen["typed"] = (order, message.channel, message.attempt, message.headers["h"])

        @worker.handler("plain")
        def plain(payload, *, message: Message) -> None:  # type: ignore[no-untyped-def]
            seen["plain"] = (payload, message.kind, threading.current_thread().name)

        @worker.default_handler
        async def rest(text: str) -> None:
            seen["rest"] = text

        await queue.publish({"id": 7}, kind="typed", channel="c", headers={"h": 1})
        await queue.publish([1], kind="plain")
        await queue.publish("x", kind="whatever")
        await worker.serve(until_empty=True)
        assert seen["typed"] == (Order(7), "c", 1, 1)
        assert seen["plain"][:2] == ([1], "plain")
        assert seen["plain"][2].startswith("laneway-handler")
        assert seen["rest"] == "x"
        assert not await queue.stats()


@run_async
async def test_a_payload_of_any_type_is_what_its_content_type_says(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        seen: list[Any] = []

        @worker.handler("any")
        async def whatever(payload: Any) -> None:
            seen.append(payload)

        @worker.handler("object")
        async def thing(payload: object) -> None:
            seen.append(payload)

        for kind in ("any", "object"):
            for payload in ("x", b"\x00", {"a": 1}):
                await queue.publish(payload, kind=kind)
        await worker.serve(until_empty=True)
        assert sorted(map(repr, seen)) == sorted(2 * [repr("x"), repr(b"\x00"), repr({"a": 1})])


def test_a_sync_user_writes_no_await(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        published = queue.publish({"id": 1}, kind="order")
        worker = Worker(queue, max_messages=1)
        seen = []

        @worker.handler("order")
        def handle(order: Order, message: Message) -> None:
            seen.append(order)
            message.complete()
            with pytest.raises(LeaseLost):
                message.defer()

        assert worker.check() == []
        worker.run()
        assert seen == [Order(1)]
        assert published.id is not None
        assert [e.outcome for e in queue.history(published.id)] == ["completed"]


@run_async
async def test_errors_are_retried_until_the_strategy_gives_up(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        tried = []

        class Twice:
            def delay(self, tried_: FailedAttempt) -> timedelta | None:
                tried.append((tried_.attempt, str(tried_.error)))
                return timedelta(0) if tried_.attempt < 3 else None

        @worker.default_handler(retry=Twice())
        async def handle(payload: int) -> None:
            raise ValueError(f"no {payload}")

        published = await queue.publish(5)
        await worker.serve(until_empty=True)
        assert tried == [(1, "no 5"), (2, "no 5"), (3, "no 5")]
        assert await outcomes(queue, published.id) == ["retried", "retried", "failed"]
        (letter,) = await queue.dead_letters.list()
        assert (letter.reason, letter.error_type, letter.error) == ("gave_up", "ValueError", "no 5")


@run_async
async def test_max_attempts_of_the_message_hold_too(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.default_handler(retry=Constant(every=0))
        async def handle(payload: int) -> None:
            raise ValueError

        await queue.publish(5, max_attempts=2)
        await worker.serve(until_empty=True)
        (letter,) = await queue.dead_letters.list()
        assert (letter.reason, letter.attempt) == ("max_attempts", 2)


@run_async
async def test_a_broken_strategy_loses_nothing(place: Place) -> None:
    class Broken:
        def delay(self, tried: FailedAttempt) -> timedelta | None:
            raise ZeroDivisionError

    class Nonsense:
        def delay(self, tried: FailedAttempt) -> Any:
            return "tomorrow"

    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler("broken", retry=Broken())
        async def broken(payload: int) -> None:
            raise ValueError

        @worker.handler("nonsense", retry=Nonsense())
        async def nonsense(payload: int) -> None:
            raise ValueError

        ids = [(await queue.publish(5, kind=kind)).id for kind in ("broken", "nonsense")]
        await worker.serve(until_empty=True)
        for id in ids:
            assert await outcomes(queue, id) == ["retried"]
        (stats,) = await queue.stats()
        assert stats.waiting + stats.scheduled == 2


@pytest.mark.parametrize("how", ["return", "raise"])
def test_defer_and_fail(place: Place, how: str) -> None:
    @run_async
    async def check() -> None:
        async with client(place) as queue:
            worker = Worker(queue)

            def say(outcome: Defer | Fail) -> Defer | Fail:
                if how == "raise":
                    raise outcome
                return outcome

            @worker.handler("step")
            async def step(payload: int, message: AsyncMessage) -> object:
                done = message.state_json() or 0
                return say(Defer(timedelta(0), state=done + 1)) if done < 3 else None

            @worker.handler("fail")
            def fail(payload: int) -> object:
                return say(Fail("no such customer", error="it is gone"))

            steps = await queue.publish(1, kind="step", max_attempts=2)
            fails = await queue.publish(1, kind="fail")
            await worker.serve(until_empty=True)
            assert await outcomes(queue, steps.id) == [*["deferred"] * 3, "completed"]
            assert await outcomes(queue, fails.id) == ["failed"]
            (letter,) = await queue.dead_letters.list()
            assert (letter.reason, letter.error) == ("no such customer", "it is gone")

    check()


@run_async
async def test_ack_policies(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        finished_before = []

        @worker.handler("reject", ack="reject")
        async def reject(payload: int) -> None:
            raise ValueError("rejected")

        @worker.handler("first", ack="first")
        async def first(payload: int, message: AsyncMessage) -> None:
            finished_before.append(await outcomes(queue, message.id))
            raise ValueError("too late")

        @worker.handler("manual", ack="manual")
        async def manual(payload: int, message: AsyncMessage) -> None:
            await message.complete()

        @worker.handler("wins")
        async def wins(payload: int, message: AsyncMessage) -> None:
            await message.fail("by hand")
            raise ValueError("after the fact")

        ids = {}
        for kind in ("reject", "first", "manual", "wins"):
            ids[kind] = (await queue.publish(1, kind=kind)).id
        await worker.serve(until_empty=True)
        assert await outcomes(queue, ids["reject"]) == ["failed"]
        assert await outcomes(queue, ids["first"]) == ["completed"]
        assert finished_before == [["completed"]]
        assert await outcomes(queue, ids["manual"]) == ["completed"]
        assert await outcomes(queue, ids["wins"]) == ["failed"]
        assert {x.reason for x in await queue.dead_letters.list()} == {"error", "by hand"}


@run_async
async def test_a_manual_handler_that_forgets_lets_the_lease_run_out(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(place, lease=timedelta(seconds=1)) as queue:
        worker = Worker(queue, max_messages=2)
        attempts = []

        @worker.default_handler(ack="manual")
        async def manual(payload: int, message: AsyncMessage) -> None:
            attempts.append(message.attempt)
            if message.attempt == 2:
                await message.complete()

        published = await queue.publish(1)
        await worker.serve()
        assert attempts == [1, 2]
        assert await outcomes(queue, published.id) == ["expired", "completed"]
        assert "without settling" in caplog.text


@run_async
async def test_what_cannot_be_decoded_is_a_dead_letter_at_once(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.default_handler
        async def handle(order: Order) -> None:
            raise AssertionError("not reached")

        await queue.publish({"id": "seven"})
        await queue.publish(b"\xff", content_type="application/json")
        await worker.serve(until_empty=True)
        letters = await queue.dead_letters.list()
        assert [letter.reason for letter in letters] == ["payload", "payload"]
        assert "DecodeError" in str(letters[0].error_type)


@run_async
async def test_an_outcome_that_cannot_be_written_is_an_error(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.handler("state", retry=SOON)
        async def state(payload: int, message: AsyncMessage) -> object:
            return Defer(state=object()) if message.attempt == 1 else None

        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        @worker.handler("mute", retry=SOON)
        async def mute(payload: int) -> None:
            raise Mute

        first = await queue.publish(1, kind="state")
        second = await queue.publish(1, kind="mute")
        await worker.serve(until_empty=True)
        await asyncio.sleep(0.05)
        await worker.serve(until_empty=True)
        assert await outcomes(queue, first.id) == ["retried", "completed"]
        assert set(await outcomes(queue, second.id)) == {"retried"}


@run_async
async def test_timeouts(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        late: list[str] = []

        @worker.handler("async", timeout=0.05, ack="reject")
        async def slow(payload: int) -> None:
            await asyncio.sleep(30)

        @worker.handler("thread", timeout=timedelta(seconds=0.05), ack="reject")
        def blocked(payload: int, message: Message) -> None:
            time.sleep(0.4)
            try:
                message.complete()
            except LeaseLost:
                late.append("refused")

        await queue.publish(1, kind="async")
        await queue.publish(1, kind="thread")
        await worker.serve(until_empty=True)
        letters = await queue.dead_letters.list()
        assert [letter.error_type for letter in letters] == ["TimeoutError"] * 2
        await asyncio.sleep(0.6)
        assert late == ["refused"]


@run_async
async def test_an_unknown_kind_is_given_back_and_dies_of_old_age(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where claims cannot leave it where it is: in an engine of somebody else."""
    monkeypatch.setattr(SqliteEngine, "lacks", {"claims by kind": "no"})
    async with AsyncQueue(f"sqlite:///{tmp_path}/q.db") as queue:
        await queue.install()
        worker = Worker(
            queue,
            unhandled_delay=timedelta(seconds=0.2),
            unhandled_timeout=timedelta(seconds=0.5),
            max_runtime=timedelta(seconds=2.5),
        )

        @worker.handler("known")
        async def known(payload: int) -> None: ...

        published = await queue.publish(1, kind="unknown", max_attempts=1)
        await worker.serve()
        told = await outcomes(queue, published.id)
        assert set(told[:-1]) == {"given_back"} and len(told) >= 3
        (letter,) = await queue.dead_letters.list()
        assert letter.reason == "no_handler"
        assert caplog.text.count("no handler for kind 'unknown'") == 1


def test_of_endless_kinds_only_so_many_are_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unhandled, "_MAX_REMEMBERED", 2)
    monkeypatch.setattr(SqliteEngine, "lacks", {"claims by kind": "no"})

    @run_async
    async def check() -> None:
        async with AsyncQueue(f"sqlite:///{tmp_path}/q.db") as queue:
            await queue.install()
            worker = Worker(queue, concurrency=1)
            worker.handler("known")(lambda payload: None)
            for kind in ("a", "a", "b", "c", "a"):
                await queue.publish(1, kind=kind)
            await worker.serve(until_empty=True)

    check()
    assert caplog.text.count("no handler for kind 'a'") == 2, "once more after it was forgotten"


@run_async
async def test_another_worker_takes_what_this_one_does_not_know(place: Place) -> None:
    async with client(place) as queue:
        old, new = (Worker(queue, unhandled_delay=timedelta(seconds=0.05)) for _ in range(2))
        seen = []

        @old.handler("old")
        async def handle_old(payload: int) -> None: ...

        @new.handler("new")
        async def handle_new(payload: int) -> None:
            seen.append(payload)
            old.stop()
            new.stop()

        await queue.publish(7, kind="new")
        async with asyncio.timeout(20):
            await asyncio.gather(old.serve(), new.serve())
        assert seen == [7]


@run_async
async def test_stop_gives_back_what_did_not_end_and_start_works_again(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=2, grace=timedelta(seconds=0.1))
        started: list[int] = []
        patient = True

        @worker.handler("async")
        async def slow(payload: int) -> None:
            started.append(payload)
            if patient:
                await asyncio.sleep(30)

        @worker.handler("thread")
        def blocked(payload: int) -> None:
            started.append(payload)
            if patient:
                time.sleep(2)

        kinds = ("async", "thread", "async")
        ids = [(await queue.publish(n, kind=kind)).id for n, kind in enumerate(kinds)]
        serving = asyncio.create_task(worker.serve())
        await until(lambda: len(started) == 2)
        worker.stop()
        await asyncio.wait_for(serving, 5)
        assert len(started) == 2
        (stats,) = await queue.stats()
        assert (stats.leased, stats.waiting) == (0, 3)
        patient = False
        await worker.serve(until_empty=True)
        assert not await queue.stats()
        for id in ids:
            history = await queue.history(id or 0)
            assert history[-1].outcome == "completed" and history[-1].attempt == 1


@run_async
async def test_a_handler_may_finish_within_the_grace(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue, concurrency=1)

        @worker.default_handler
        async def handle(payload: int) -> None:
            worker.stop()
            await asyncio.sleep(0.2)

        first, second = await queue.publish_many([1, 2])
        await worker.serve()
        assert await outcomes(queue, first.id) == ["completed"]
        assert await outcomes(queue, second.id) in ([], ["given_back"])


@run_async
async def test_it_stops_after_max_messages_and_max_runtime(place: Place) -> None:
    async with client(place) as queue:
        await queue.publish_many(range(25))
        worker = Worker(queue, concurrency=4, max_messages=10)
        seen = []

        @worker.default_handler
        async def handle(payload: int) -> None:
            seen.append(payload)

        await worker.serve()
        assert len(seen) == 10
        timed = Worker(queue, max_runtime=timedelta(seconds=0.5))
        timed.default_handler(handle)
        await timed.serve()
        assert sorted(seen) == list(range(25))


@run_async
async def test_concurrency_is_kept(place: Place) -> None:
    async with client(place) as queue:
        await queue.publish_many(range(40))
        worker = Worker(queue, concurrency=7)
        now = most = 0

        @worker.default_handler
        async def handle(payload: int) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.005)
            now -= 1

        await worker.serve(until_empty=True)
        assert most == 7


@run_async
async def test_middleware_wraps_handlers_of_all_kinds(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        trace: list[str] = []

        @worker.middleware
        async def outer(message: Any, call: Any) -> object:
            trace.append(f"outer {message.kind}")
            return await call()

        @worker.middleware
        async def inner(message: Any, call: Any) -> object:
            trace.append("inner")
            try:
                return await call()
            finally:
                trace.append("after")

        @worker.handler("thread")
        def handle(payload: int) -> None:
            trace.append("handler")

        await queue.publish(1, kind="thread")
        await worker.serve(until_empty=True)
        assert trace == ["outer thread", "inner", "handler", "after"]


@run_async
async def test_logs_carry_the_message(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    async with client(place) as queue:
        worker = Worker(queue)

        @worker.default_handler
        async def handle(payload: int) -> None:
            raise ValueError("broken")

        published = await queue.publish(1, channel="tenant")
        with caplog.at_level(logging.WARNING):
            await worker.serve(until_empty=True)
        (record,) = [r for r in caplog.records if "broken" in r.getMessage()]
        fields = record.__dict__
        assert (fields["message_id"], fields["channel"], fields["attempt"]) == (
            published.id,
            "tenant",
            1,
        )


def test_impossible_handlers_are_refused(place: Place) -> None:
    worker = Worker(Queue(place.url))

    async def is_async(payload: int) -> None: ...

    def is_plain(payload: int) -> None: ...

    def needs_more(message: Message, another: Message) -> None: ...

    register = worker.handler
    for refused in (
        lambda: register("a", run="thread")(is_async),
        lambda: register("a", run="async")(is_plain),
        lambda: register("a", timeout=0)(is_plain),
        lambda: register("a", ack="perhaps")(is_plain),  # type: ignore[call-overload]
        lambda: register("a")(needs_more),
        lambda: Worker(Queue(place.url), concurrency=0),
        lambda: Worker(Queue(place.url), queues=[]),
    ):
        with pytest.raises(InvalidInput):
            refused()
    register("a")(is_plain)
    with pytest.raises(InvalidOption, match="two handlers"):
        register("a")(is_async)


def test_a_worker_without_schema_or_handlers_says_so(empty_place: Place) -> None:
    worker = Worker(Queue(empty_place.url, schema=empty_place.schema))
    with pytest.raises(InvalidOption, match="no handler"):
        worker.run()

    @worker.default_handler
    def handle(payload: int) -> None: ...

    assert ["not installed" in problem for problem in worker.check()] == [True]
    with pytest.raises(SchemaMissing):
        worker.run()


@run_async
async def test_progress_starts_the_tries_anew(place: Place) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        attempts = []

        @worker.default_handler(retry=Constant(every=0, attempts=2))
        async def handle(payload: int, message: AsyncMessage) -> object:
            attempts.append(message.attempt)
            if message.attempt in (1, 3, 5):
                raise ValueError
            return Defer() if message.attempt < 6 else None

        published = await queue.publish(1, max_attempts=100)
        await worker.serve(until_empty=True)
        assert attempts == [1, 2, 3, 4, 5, 6]
        assert (await outcomes(queue, published.id))[-1] == "completed"
