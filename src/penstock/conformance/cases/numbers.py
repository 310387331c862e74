"""Numbers for operators, by queue and by channel."""

from datetime import timedelta

from penstock.conformance.registry import case
from penstock.conformance.world import World
from penstock.model import ChannelNumbers


async def count(world: World, channel: str) -> tuple[int, int, int, int]:
    """waiting, scheduled, leased, dead"""
    n = await world.queue.channel(channel).numbers()
    return n.waiting, n.scheduled, n.leased, n.dead


@case("numbers", "follow a message through its states")
async def states(world: World) -> None:
    assert await world.queue.channel("a").numbers() == ChannelNumbers(world.name, "a")
    await world.fill("a", 5)
    await world.fill("a", 2, delay=timedelta(hours=1))
    assert await count(world, "a") == (5, 2, 0, 0)
    messages = list(await world.queue.claim(4))
    assert await count(world, "a") == (1, 2, 4, 0)
    await messages[0].complete()
    await messages[1].fail()
    await messages[2].give_back()
    await messages[3].defer(timedelta(hours=1))
    assert await count(world, "a") == (2, 3, 0, 1)
    await world.queue.dead_letters.redrive(queue=world.name)
    assert await count(world, "a") == (3, 3, 0, 0)
    await world.drain()
    assert await count(world, "a") == (0, 3, 3, 0)


@case("numbers", "cancelled and lapsed messages are not counted")
async def ended(world: World) -> None:
    ids = await world.fill("a", 4)
    later = await world.fill("a", 2, delay=timedelta(hours=1))
    await world.queue.cancel([ids[0], later[0]])
    await world.fill("a", 3, expires_in=timedelta(seconds=1))
    world.clock.advance(2)
    await world.upkeep()
    assert (await count(world, "a"))[0] == 3
    assert await world.queue.cancel(later[1:])
    await world.drain()
    assert (await count(world, "a"))[2:] == (3, 0)


@case("numbers", "by queue they add up")
async def by_queue(world: World) -> None:
    await world.fill("a", 3)
    await world.fill("b", 2)
    await world.fill("b", 1, delay=timedelta(hours=1))
    message = await world.claim_one()
    await message.fail()
    await world.claim_one()
    (n,) = (n for n in await world.queue.numbers() if n.queue == world.name)
    assert (n.waiting, n.scheduled, n.leased, n.dead, n.channels) == (3, 1, 1, 1, 2)


@case("numbers", "the fullest channel comes first")
async def fullest(world: World) -> None:
    for name, size in (("a", 1), ("b", 5), ("c", 3)):
        await world.fill(name, size)
    found = await world.queue.channel_numbers(queue=world.name)
    assert [(n.channel, n.waiting) for n in found] == [("b", 5), ("c", 3), ("a", 1)]
    assert len(await world.queue.channel_numbers(queue=world.name, limit=2)) == 2


@case("numbers", "the oldest is what has waited longest")
async def oldest(world: World) -> None:
    await world.publish(1, channel="a", at=world.later(-100))
    start = world.clock.now
    await world.publish(2, channel="b", at=world.later(-200))
    numbers = {n.channel: n for n in await world.queue.channel_numbers(queue=world.name)}
    assert numbers["b"].oldest_due == start - timedelta(seconds=200)
    (n,) = (n for n in await world.queue.numbers() if n.queue == world.name)
    assert n.oldest_due == start - timedelta(seconds=200)
    await world.queue.complete(await world.drain())
    assert not [n for n in await world.queue.numbers() if n.queue == world.name]


@case("numbers", "expired leases wait again")
async def expired(world: World) -> None:
    await world.fill("a", 3)
    await world.queue.claim(2)
    await world.expire()
    waiting, scheduled, leased, dead = await count(world, "a")
    assert (waiting + scheduled, leased, dead) == (3, 0, 0)
