"""wait: how a message ended, whether it has, does or will."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, NotEnded
from laneway.event import MessageEnd

MOMENT = timedelta(milliseconds=50)
LONG = timedelta(seconds=20)


@case("wait", "for a message that has ended answers at once, for every way to end")
async def ended(world: World) -> None:
    completed, failed, cancelled, lapsed, discarded = await world.publish(*range(5))
    by_id = {m.id: m for m in await world.queue.claim(2)}
    await by_id[completed].complete()
    await by_id[failed].fail("hopeless", error=ValueError("bad"))
    await world.queue.cancel([cancelled])
    await (await world.claim_one()).defer()
    await world.queue.cancel([lapsed])
    (third,) = await world.queue.claim()
    assert third.id == discarded
    await third.fail("no use")
    await world.queue.dead_letters.discard([discarded])
    endings = [await world.queue.wait(id, LONG) for id in (completed, failed, cancelled, discarded)]
    assert [e.outcome for e in endings] == ["completed", "dead", "cancelled", "discarded"]
    assert [e.message_id for e in endings] == [completed, failed, cancelled, discarded]
    dead = endings[1]
    assert (dead.reason, dead.error_type, dead.error) == ("hopeless", "ValueError", "bad")
    assert all(e.ended_at is not None and e.ended_at <= world.clock.now for e in endings)


@case("wait", "for a message that lapses says so")
async def lapses(world: World) -> None:
    (id,) = await world.publish(1, expires_in=timedelta(seconds=5))
    world.clock.advance(6)
    await world.upkeep()
    assert (await world.queue.wait(id, LONG)).outcome == "lapsed"


@case("wait", "goes on while the message waits, is leased, deferred or comes back")
async def goes_on(world: World) -> None:
    (id,) = await world.publish(1)
    with raises(NotEnded):
        await world.queue.wait(id, MOMENT)
    message = await world.claim_one()
    with raises(NotEnded):
        await world.queue.wait(id, MOMENT)
    await message.fail()
    assert (await world.queue.wait(id, LONG)).outcome == "dead"
    await world.queue.dead_letters.redrive([id])
    with raises(NotEnded):
        await world.queue.wait(id, timedelta(0))


@case("wait", "wakes up when the message ends")
async def wakes(world: World) -> None:
    (id,) = await world.publish(1)
    waiting = [asyncio.create_task(world.queue.wait(id, LONG)) for _ in range(3)]
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in waiting)
    await (await world.claim_one()).complete()
    endings = await asyncio.gather(*waiting)
    assert [e.outcome for e in endings] == ["completed"] * 3


@case("wait", "racing with complete never misses it")
async def race(world: World) -> None:
    ids = await world.fill("a", 60)
    waiter, worker = world.client(), world.client()

    async def wait_for(some: list[int]) -> list[MessageEnd]:
        return [await waiter.wait(id, LONG) for id in some]

    async def work() -> None:
        while claim := await world.claim(7, worker):
            await worker.complete(claim)

    first, second, _ = await asyncio.gather(wait_for(ids[::2]), wait_for(ids[1::2]), work())
    assert [(e.message_id, e.outcome) for e in first] == [(id, "completed") for id in ids[::2]]
    assert [(e.message_id, e.outcome) for e in second] == [(id, "completed") for id in ids[1::2]]


@case("wait", "says what is known when the history keeps failures only")
async def failures_only(world: World) -> None:
    async with world.configured(history="failures"):
        completed, failed = await world.publish(1, 2)
        await (await world.claim_one()).complete()
        await (await world.claim_one()).fail("hopeless")
        assert (await world.queue.wait(completed, LONG)).outcome == "unknown"
        dead = await world.queue.wait(failed, LONG)
        assert (dead.outcome, dead.reason) == ("dead", "hopeless")
        await world.queue.dead_letters.discard([failed])
        assert (await world.queue.wait(failed, LONG)).outcome == "discarded"


@case("wait", "for a message that never was says that nothing is known")
async def never(world: World) -> None:
    assert await world.queue.wait(2**60, LONG) == MessageEnd(2**60, "unknown")
    with raises(InvalidOption):
        await world.queue.wait(0)
