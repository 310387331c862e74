"""extend: the heartbeat."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost


@case("extend", "holds the lease from now on for the length asked for")
async def longer(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    world.clock.advance(20)
    assert await message.extend(timedelta(seconds=40)) == world.later(40)
    assert message.until == world.later(40)
    world.clock.advance(39)
    assert (await world.queue.upkeep()).ran
    await message.complete()


@case("extend", "never shortens")
async def never_shorter(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one(lease=timedelta(minutes=5))
    until = message.until
    assert await message.extend(timedelta(seconds=1)) == until


@case("extend", "what is not extended runs out at its time")
async def others(world: World) -> None:
    await world.fill("a", 2)
    kept, left = await world.queue.claim(2)
    world.clock.advance(20)
    await kept.extend()
    world.clock.advance(11)
    await world.upkeep()
    await kept.complete()
    with raises(LeaseLost):
        await left.complete()


@case("extend", "a lease that was taken back stays lost")
async def lost(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await world.expire()
    with raises(LeaseLost):
        await message.extend()
    world.clock.advance(60)
    again = await world.claim_one()
    with raises(LeaseLost):
        await message.extend(timedelta(hours=1))
    assert again.until == world.later(30)


@case("extend", "a batch says per message what happened, and until when")
async def batch(world: World) -> None:
    await world.fill("a", 3)
    messages = list(await world.queue.claim(3))
    await messages[1].complete()
    world.clock.advance(5)
    answers = await world.queue.extend(messages, timedelta(minutes=1))
    assert [a.status for a in answers] == ["extended", "lost", "extended"]
    assert [a.until for a in answers] == [world.later(60), None, world.later(60)]
