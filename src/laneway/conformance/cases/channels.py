"""Channels: policies, pause and removal."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import ChannelClosed
from laneway.model import ClaimStatus, Policy


@case("channel", "needs no set-up and has no limit")
async def default(world: World) -> None:
    channel = world.queue.channel("new")
    assert await channel.policy() == Policy()
    await world.fill("new", 100)
    assert len(await world.queue.claim(100)) == 100


@case("channel", "a policy replaces the one before as a whole")
async def replaced(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.set_policy(Policy(concurrency=2, rate=2.5, backlog=7, weight=3))
    assert await channel.policy() == Policy(2, 2.5, 3, 7, 3.0)
    await channel.set_policy(Policy(rate=5, burst=50))
    assert await channel.policy() == Policy(None, 5.0, 50, None, 1.0)
    await channel.pause()
    await channel.unlimited()
    assert await channel.policy() == Policy(paused=True)


@case("channel", "many policies in one call")
async def many(world: World) -> None:
    await world.queue.set_policies({"a": Policy(concurrency=1), "b": Policy(weight=2)})
    assert (await world.queue.channel("a").policy()).concurrency == 1
    assert (await world.queue.channel("b").policy()).weight == 2


@case("pause", "no claim until it is resumed, publishing goes on")
async def pause(world: World) -> None:
    channel = world.queue.channel("a")
    await world.fill("a", 2)
    held = await world.claim_one()
    await channel.pause()
    assert (await channel.policy()).paused
    await world.fill("a", 2)
    await held.complete()
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await channel.resume()
    assert not (await channel.policy()).paused
    assert len(await world.queue.claim(10)) == 3


@case(
    "pause",
    "a claim after it is resumed takes what it was asked for, or says to look again at once",
)
async def resumed(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.pause()
    await world.fill("a", 27)
    assert (await world.queue.claim(30)).status is ClaimStatus.BLOCKED
    await channel.resume()
    await world.publish(1, channel="b")
    claim = await world.queue.claim(30)
    assert len(claim) == 28 or claim.look_again == timedelta(0), claim


@case("pause", "a channel nobody knows yet can be paused")
async def pause_unknown(world: World) -> None:
    await world.queue.channel("a").pause()
    await world.publish(1, channel="a")
    assert not await world.queue.claim()
    await world.queue.channel("a").resume()
    await world.claim_one()


@case("pause", "limits can be changed meanwhile")
async def pause_and_limit(world: World) -> None:
    channel = world.queue.channel("a")
    await world.fill("a", 5)
    await channel.pause()
    await channel.limit(concurrency=2)
    assert not await world.queue.claim(10)
    await channel.resume()
    assert len(await world.queue.claim(10)) == 2


@case("remove", "takes no new messages, drains, and then the name is free with a fresh policy")
async def remove(world: World) -> None:
    channel = world.queue.channel("old")
    await channel.limit(concurrency=1)
    await world.fill("old", 2)
    await channel.remove()
    assert (await channel.policy()).closing
    with raises(ChannelClosed):
        await world.queue.publish(3, channel="old")
    for _ in range(2):
        await world.upkeep()
        await (await world.claim_one()).complete()
    await world.upkeep()
    assert await channel.policy() == Policy()
    await world.fill("old", 3)
    assert len(await world.queue.claim(10)) == 3


@case("remove", "a paused channel is resumed to drain")
async def remove_paused(world: World) -> None:
    channel = world.queue.channel("old")
    await channel.pause()
    await world.publish(1, channel="old")
    await channel.remove()
    await world.claim_one()


@case("remove", "waits for what is leased or scheduled")
async def remove_waits(world: World) -> None:
    channel = world.queue.channel("old")
    await world.queue.publish(1, channel="old", delay=timedelta(seconds=10))
    await channel.remove()
    await world.upkeep()
    assert (await channel.policy()).closing
    world.clock.advance(10)
    message = await world.claim_one()
    await world.upkeep()
    assert (await channel.policy()).closing
    await message.complete()
    await world.upkeep()
    assert not (await channel.policy()).closing


@case("remove", "a new policy takes it back")
async def remove_undone(world: World) -> None:
    channel = world.queue.channel("old")
    await world.publish(1, channel="old")
    await channel.remove()
    await channel.limit(concurrency=1)
    await world.publish(2, channel="old")
    assert len(await world.queue.claim(10)) == 1
