"""Group commit for tasks: who goes together, who is answered what."""

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from laneway import AsyncQueue, ClaimStatus, LeaseLost
from laneway.client.aio.group_commit import AsyncGroup
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from tests.client.worlds import run_async
from tests.place import Place

LONG = 60.0  # seconds; nobody goes on without a flush that the test holds back


class Flush:
    """A flush that waits until it is let go, and answers each part doubled."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.gate = asyncio.Event()
        self.started = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, parts: list[Any]) -> list[Any]:
        self.batches.append(parts)
        self.started.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        if "bad" in parts:
            raise DatabaseFailed("bad", "22000")
        return [part * 2 for part in parts]


def size(part: Any) -> int:
    return part if isinstance(part, int) else 1


@run_async
async def test_later_calls_go_together() -> None:
    flush = Flush()
    group: AsyncGroup[Any, Any] = AsyncGroup(flush, size, 6, patience=LONG)
    first = asyncio.create_task(group.call(1))
    await flush.started.wait()
    rest = [asyncio.create_task(group.call(n)) for n in (2, 3, 4, 10, 5)]
    await asyncio.sleep(0)
    flush.gate.set()
    assert await asyncio.gather(first, *rest) == [2, 4, 6, 8, 20, 10]
    assert flush.batches == [[1], [2, 3], [4], [10], [5]]
    await group.drain()


@run_async
async def test_whom_another_group_answers_can_join() -> None:
    completes, claims = Flush(), Flush()
    claims.gate.set()
    completing: AsyncGroup[Any, Any] = AsyncGroup(completes, size, 100, patience=LONG)
    claiming: AsyncGroup[Any, Any] = AsyncGroup(
        claims, size, 100, before=completing.landed, patience=LONG
    )

    async def consumer(number: int) -> None:
        await completing.call(number)
        await claiming.call(number)

    busy = [asyncio.create_task(consumer(number)) for number in (1, 2)]
    await completes.started.wait()
    idle = asyncio.create_task(claiming.call(3))
    await asyncio.sleep(0)
    completes.gate.set()
    await asyncio.gather(*busy, idle)
    assert claims.batches == [[3, 1, 2]]


@run_async
async def test_a_flush_that_hangs_keeps_no_other_group_waiting() -> None:
    completes, claims = Flush(), Flush()
    claims.gate.set()
    completing: AsyncGroup[Any, Any] = AsyncGroup(completes, size, 100, patience=LONG)
    claiming: AsyncGroup[Any, Any] = AsyncGroup(
        claims, size, 100, before=completing.landed, patience=LONG
    )
    hanging = asyncio.create_task(completing.call(1))
    await completes.started.wait()
    assert await asyncio.wait_for(claiming.call(3), 10) == 6
    assert not hanging.done()
    completes.gate.set()
    await hanging


@run_async
async def test_nobody_waits_for_a_flush_that_takes_long() -> None:
    quick = asyncio.Event()

    async def flush(parts: list[str]) -> list[str]:
        if "slow" in parts:
            await quick.wait()
        return parts

    group: AsyncGroup[str, str] = AsyncGroup(flush, size, 100, patience=0.01)
    late = asyncio.create_task(group.call("slow"))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        assert await asyncio.gather(*(group.call("quick") for _ in range(3))) == ["quick"] * 3
        assert await group.call("quick") == "quick"
        assert not late.done()
        quick.set()
        await group.drain()
        assert await late == "slow"


@run_async
async def test_a_key_that_is_waited_for_holds_up_no_other(place: Place) -> None:
    async with (
        AsyncQueue(place.url, schema=place.schema) as queue,
        await psycopg.AsyncConnection.connect(place.url) as open_one,
        asyncio.timeout(10),
    ):
        await queue.install()
        await queue.publish("first", key="k", connection=open_one)
        # In the same turn of the loop: who has no key shares no round trip with who waits for one.
        second = asyncio.create_task(queue.publish("second", key="k"))
        third = await queue.publish("third")
        fourth = await queue.publish("fourth", key="other")
        assert third.status == fourth.status == "published"
        assert not second.done()
        await open_one.commit()
        assert (await second).status == "existing"


@run_async
async def test_a_bad_part_spoils_only_its_own_call() -> None:
    flush = Flush()
    group: AsyncGroup[Any, Any] = AsyncGroup(flush, size, 100, patience=LONG)
    first = asyncio.create_task(group.call("first"))
    await flush.started.wait()
    rest = [asyncio.create_task(group.call(part)) for part in ("a", "bad", "b")]
    await asyncio.sleep(0)
    flush.gate.set()
    answers = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [answers[0], answers[1], answers[3]] == ["firstfirst", "aa", "bb"]
    assert isinstance(answers[2], DatabaseFailed)
    assert flush.batches == [["first"], ["a", "bad", "b"], ["a"], ["bad"], ["b"]]


@run_async
async def test_a_lost_connection_is_told_to_all_and_not_tried_again() -> None:
    flush = Flush()
    flush.error = ConnectionUnavailable("gone")
    group: AsyncGroup[Any, Any] = AsyncGroup(flush, size, 100, patience=LONG)
    calls = [asyncio.create_task(group.call("first"))]
    await flush.started.wait()
    calls += [asyncio.create_task(group.call(part)) for part in ("a", "b")]
    await asyncio.sleep(0)
    flush.gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ConnectionUnavailable] * 3
    assert flush.batches == [["first"], ["a", "b"]]


@run_async
async def test_cancelling_one_disturbs_no_other() -> None:
    flush = Flush()
    undone = []

    async def undo(answer: Any) -> None:
        undone.append(answer)

    group: AsyncGroup[Any, Any] = AsyncGroup(flush, size, 100, undo, patience=LONG)
    first = asyncio.create_task(group.call("first"))
    await flush.started.wait()
    waiting, other = (asyncio.create_task(group.call(part)) for part in ("waiting", "other"))
    await asyncio.sleep(0)
    first.cancel()
    waiting.cancel()
    await asyncio.sleep(0)
    flush.gate.set()
    assert await other == "otherother"
    answers = await asyncio.gather(first, waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 2
    # Under way: undone. Still waiting: never sent.
    assert undone == ["firstfirst"]
    assert flush.batches == [["first"], ["other"]]


@run_async
async def test_an_answer_that_meets_a_cancellation_is_undone() -> None:
    undone = []

    async def flush(parts: list[str]) -> list[str]:
        await asyncio.sleep(0)
        # Runs after the answer was given and before the caller wakes.
        asyncio.get_running_loop().call_soon(call.cancel)
        return parts

    async def undo(answer: Any) -> None:
        undone.append(answer)

    group: AsyncGroup[Any, Any] = AsyncGroup(flush, size, 100, undo, patience=LONG)
    call = asyncio.create_task(group.call("x"))
    with pytest.raises(asyncio.CancelledError):
        await call
    assert undone == ["x"]


@run_async
async def test_concurrent_calls_share_round_trips(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        trips = count_trips(queue)
        published = await asyncio.gather(*(queue.publish(n, key=str(n % 50)) for n in range(100)))
        assert len({p.id for p in published}) == 50
        assert sum(p.existing for p in published) == 50
        assert trips == ["publish"]
        trips.clear()
        claims = await asyncio.gather(*(queue.claim(4) for _ in range(20)))
        messages = [message for claim in claims for message in claim]
        assert len({m.id for m in messages}) == 50
        assert all(len(claim) <= 4 for claim in claims)
        empty = [claim for claim in claims if not claim]
        assert {claim.status for claim in empty} <= {ClaimStatus.BUSY, ClaimStatus.EMPTY}
        assert all(claim.look_again == timedelta(0) for claim in empty if claim.status == "busy")
        assert sorted(trips) == ["claim", "claim", "step_operation", "upkeep"]
        trips.clear()
        await messages[0].complete()
        answers = await asyncio.gather(
            *(message.complete() for message in messages), return_exceptions=True
        )
        assert [type(a) for a in answers if a is not None] == [LeaseLost]
        assert len(trips) <= 4


@run_async
async def test_claims_of_a_cancelled_caller_are_given_back(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema, upkeep_every=None) as queue:
        await queue.install()
        await queue.publish(1)
        sent = asyncio.Event()
        run = queue.database.run

        async def watched(*args: Any, **kwargs: Any) -> Any:
            sent.set()
            return await run(*args, **kwargs)

        queue.database.run = watched  # type: ignore[method-assign]
        call = asyncio.create_task(queue.claim())
        await sent.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        for group in list(queue.database._groups.values()):
            await group.drain()
        (message,) = await queue.claim()
        assert message.attempt == 1


@run_async
async def test_without_coalescing_each_call_goes_alone(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema, group_commit=False) as queue:
        await queue.install()
        trips = count_trips(queue)
        await asyncio.gather(*(queue.publish(n) for n in range(5)))
        assert trips == ["publish"] * 5


def count_trips(queue: AsyncQueue) -> list[str]:
    """Fills with the name of each plan that goes to the database."""
    trips: list[str] = []
    run = queue.database.run

    async def counted(plan: Any, *args: Any, **kwargs: Any) -> Any:
        trips.append(plan.__name__)
        return await run(plan, *args, **kwargs)

    queue.database.run = counted  # type: ignore[method-assign]
    return trips
