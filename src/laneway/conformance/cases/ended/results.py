"""keep_result: what handlers return, stored with the completion, for whoever waits."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import (
    InvalidOption,
    MessageCancelled,
    MessageDead,
    MessageLapsed,
    MessageUnknown,
    NotEnded,
    PayloadTooLarge,
    ResultMissing,
)
from laneway.model import NewMessage

HOUR = timedelta(hours=1)
LONG = timedelta(seconds=20)
NOW = timedelta(0)


@dataclass
class Receipt:
    order: int
    total: str


@case("results", "what the holder completes with comes back, as it is or as a type")
async def comes_back(world: World) -> None:
    published = await world.queue.publish(1, keep_result=HOUR)
    with raises(NotEnded):
        await world.queue.result(published, timeout=NOW)
    message = await world.claim_one()
    assert message.keep_result == HOUR
    await message.complete(result=Receipt(9182, "12.50"))
    assert await world.queue.result(published, timeout=LONG) == {"order": 9182, "total": "12.50"}
    assert await world.queue.result(published, Receipt, timeout=LONG) == Receipt(9182, "12.50")
    assert await world.queue.result(message.id, Receipt, timeout=NOW) == Receipt(9182, "12.50")
    assert await world.queue.result(published, timeout=NOW) == {"order": 9182, "total": "12.50"}
    ending = await world.queue.wait(message.id, NOW)
    assert ending.outcome == "completed"
    assert ending.kept_until == world.clock.now + HOUR


@case("results", "of a batch, each has its own; who asked for none has none")
async def batch(world: World) -> None:
    drafts = [NewMessage(n, keep_result=HOUR if n % 2 else None) for n in range(6)]
    ids = [p.id for p in await world.queue.publish_many(drafts)]
    values: list[object] = [None, "text", b"", {"a": [1]}, 0, 2**70]
    messages = sorted(await world.claim(10), key=lambda m: m.id)
    await world.queue.complete(messages, results=values)
    for number, id in enumerate(ids):
        assert id is not None
        if number % 2:
            assert await world.queue.result(id, timeout=NOW) == values[number]
        else:
            with raises(ResultMissing):
                await world.queue.result(id, timeout=NOW)
    with raises(InvalidOption):
        await world.queue.complete(messages, results=[1])


@case("results", "completing without one keeps null")
async def null(world: World) -> None:
    published = await world.queue.publish(1, keep_result=HOUR)
    await world.queue.complete(await world.claim())
    assert await world.queue.result(published, timeout=NOW) is None


@case("results", "a stale lease stores nothing, also beside the lease that holds")
async def stale(world: World) -> None:
    published = await world.queue.publish(1, keep_result=HOUR)
    old = await world.claim_one()
    await world.expire()
    world.clock.advance(3600)
    new = await world.claim_one()
    (lost,) = await world.queue.complete([old], results=["old"])
    assert lost.lost
    with raises(NotEnded):
        await world.queue.result(published, timeout=NOW)
    answers = await world.queue.complete([old, new], results=["old", "new"])
    assert [a.status for a in answers] == ["lost", "completed"]
    assert await world.queue.result(published, timeout=NOW) == "new"
    (late,) = await world.queue.complete([old], results=["late"])
    assert late.lost
    assert await world.queue.result(published, timeout=NOW) == "new"


@case("results", "belong to the caller's transaction")
async def in_transaction(world: World) -> None:
    published = await world.queue.publish(1, keep_result=HOUR)
    message = await world.claim_one()
    async with await world.caller() as mine:
        await message.complete(result="undone", connection=mine.connection)
        await mine.rollback()
    with raises(NotEnded):
        await world.queue.result(published, timeout=NOW)
    async with await world.caller() as mine:
        await message.complete(result="done", connection=mine.connection)
        await mine.commit()
    assert await world.queue.result(published, timeout=NOW) == "done"


@case("results", "expire, and upkeep removes them")
async def expire(world: World) -> None:
    published = await world.queue.publish(1, keep_result=60)
    await (await world.claim_one()).complete(result="soon gone")
    world.clock.advance(59)
    assert await world.queue.result(published, timeout=NOW) == "soon gone"
    world.clock.advance(2)
    with raises(ResultMissing) as expired:
        await world.queue.result(published, timeout=NOW)
    assert "was kept until" in str(expired.error)
    await world.upkeep()
    with raises(ResultMissing) as removed:
        await world.queue.result(published, timeout=NOW)
    assert "is not kept" in str(removed.error)


@case("results", "every other end has an error of its own")
async def ends(world: World) -> None:
    dead = await world.queue.publish(1, keep_result=HOUR)
    await (await world.claim_one()).fail("hopeless", error=ValueError("bad"))
    with raises(MessageDead) as died:
        await world.queue.result(dead, timeout=NOW)
    assert "hopeless" in str(died.error)
    assert (died.error.ending.error_type, died.error.ending.error) == ("ValueError", "bad")
    await world.queue.dead_letters.redrive([dead.id or 0])
    with raises(NotEnded):
        await world.queue.result(dead, timeout=NOW)
    await (await world.claim_one()).complete(result="at last")
    assert await world.queue.result(dead, timeout=NOW) == "at last"

    cancelled = await world.queue.publish(2, keep_result=HOUR)
    await world.queue.cancel([cancelled.id or 0])
    with raises(MessageCancelled):
        await world.queue.result(cancelled, timeout=NOW)
    lapsed = await world.queue.publish(3, keep_result=HOUR, expires_in=5)
    world.clock.advance(6)
    await world.upkeep()
    with raises(MessageLapsed):
        await world.queue.result(lapsed, timeout=NOW)
    with raises(MessageUnknown):
        await world.queue.result(2**60, timeout=NOW)


@case("results", "are known without a history, also for those that no handler ended")
async def without_history(world: World) -> None:
    async with world.configured(history="none"):
        ids = await world.publish(*range(4), keep_result=HOUR)
        await (await world.claim_one()).complete(result="done")
        failed = await world.claim_one()
        await failed.fail("no use", error=ValueError("bad"))
        await world.queue.dead_letters.discard([failed.id])
        await world.queue.cancel(ids[2:])
        endings = [await world.queue.wait(id, NOW) for id in ids]
        assert [e.outcome for e in endings] == ["completed", "discarded", "cancelled", "cancelled"]
        assert (endings[1].reason, endings[1].error) == ("no use", "bad")
        assert await world.queue.result(ids[0], timeout=NOW) == "done"


@case("results", "that are too large or no JSON are refused, and nothing is written")
async def unstorable(world: World) -> None:
    client = world.client(max_payload=10)
    published = await client.publish(1, keep_result=HOUR)
    (message,) = await client.claim()
    with raises(PayloadTooLarge) as large:
        await message.complete(result="x" * 11)
    assert "the result has" in str(large.error)
    await message.complete(result="x" * 10)
    assert await world.queue.result(published, timeout=NOW) == "x" * 10


@case("results", "a header that is no number asks for nothing")
async def odd_headers(world: World) -> None:
    for odd in ("soon", None, True, [1], {"a": 1}):
        published = await world.queue.publish(1, headers={"laneway-keep-result": odd})
        message = await world.claim_one()
        assert message.keep_result is None
        await message.give_back()
        await world.queue.cancel([published.id or 0])
        assert (await world.queue.wait(published.id or 0, NOW)).kept_until is None
    huge = await world.queue.publish(1, headers={"laneway-keep-result": 1e300})
    await world.queue.cancel([huge.id or 0])
    assert (await world.queue.wait(huge.id or 0, NOW)).kept_until is not None


@case("results", "many who wait are all told, whoever completes")
async def many(world: World) -> None:
    published = [await world.queue.publish(n, keep_result=HOUR) for n in range(3)]
    waiting = [asyncio.create_task(world.queue.result(p, int, timeout=LONG)) for p in published]
    await asyncio.sleep(0.4)
    other = world.client()
    messages = await world.claim(3, other)
    for message in messages:
        await message.complete(result=message.json() * 2)
    assert sorted(await asyncio.gather(*waiting)) == [0, 2, 4]
