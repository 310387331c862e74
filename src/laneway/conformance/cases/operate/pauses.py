"""Pauses of whole queues, of kinds and of channels, for good and for a time."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidName, InvalidTime
from laneway.model import ClaimStatus, Policy
from laneway.operations import Pause


@case("pause", "a paused queue starts nothing, publishing goes on, and what runs goes on")
async def whole(world: World) -> None:
    await world.publish(1, 2, 3)
    running = await world.claim_one()
    pause = await world.queue.pause(reason="deploy ☃", actor="ann")
    since = world.clock.now
    assert pause == Pause(world.name, None, None, since, "ann", "deploy ☃")
    await world.publish(4)
    claim = await world.claim(10)
    assert (len(claim), claim.status, claim.look_again) == (0, ClaimStatus.BLOCKED, None)
    await running.complete()
    assert list(await world.queue.pauses(queue=world.name)) == [pause]
    assert await world.queue.resume()
    assert not await world.queue.resume()
    assert not await world.queue.pauses(queue=world.name)
    assert [int(message.payload) for message in await world.drain()] == [2, 3, 4]


@case("pause", "a pause for a time ends by itself, and a claim says when")
async def timed(world: World) -> None:
    await world.publish(1)
    pause = await world.queue.pause(duration=60)
    assert pause.until == world.later(60)
    world.clock.advance(20)
    claim = await world.claim()
    assert (claim.status, claim.look_again) == (ClaimStatus.BLOCKED, timedelta(seconds=40))
    world.clock.advance(41)
    assert not await world.queue.pauses(queue=world.name)
    assert int((await world.claim_one()).payload) == 1
    assert not await world.queue.resume()


@case("pause", "pausing again replaces the pause before")
async def again(world: World) -> None:
    await world.publish(1)
    await world.queue.pause(duration=60)
    await world.queue.pause()
    world.clock.advance(61)
    assert (await world.claim()).status is ClaimStatus.BLOCKED
    await world.queue.pause(duration=5)
    world.clock.advance(6)
    assert int((await world.claim_one()).payload) == 1


@case("pause", "other queues of the same claim go on, and nothing of the paused one is lost")
async def other_queues(world: World) -> None:
    other = f"{world.name} too"
    ids = await world.publish(1, 2)
    await world.queue.pause()
    await world.queue.publish("other", queue=other)
    both = [other, world.name]
    claim = await world.queue.claim(10, queues=both)
    assert [message.queue for message in claim] == [other]
    for message in claim:
        await message.complete()
    for _ in range(3):
        claim = await world.queue.claim(10, queues=both)
        assert (len(claim), claim.status) == (0, ClaimStatus.BLOCKED)
    await world.queue.publish("other", queue=other)
    assert len(await world.queue.claim(10, queues=both)) == 1
    await world.queue.resume()
    assert [m.id for m in await world.queue.claim(10, queues=both)] == ids


@case("pause", "stats and channels say that the queue is paused")
async def shown(world: World) -> None:
    await world.publish(1, channel="a")
    await world.queue.pause(duration=3600)
    (stats,) = [one for one in await world.queue.stats() if one.queue == world.name]
    assert (stats.paused, stats.waiting) == (True, 1)
    (info,) = await world.queue.channels(queue=world.name)
    assert info.waits_for == "queue paused"
    await world.queue.resume()
    (stats,) = [one for one in await world.queue.stats() if one.queue == world.name]
    assert not stats.paused


@case("pause", "a paused kind is put back uncounted, and others pass it")
async def kind(world: World) -> None:
    await world.publish(1, 2, kind="mail")
    await world.publish(3, kind="sms")
    pause = await world.queue.pause(kind="mail", duration=3600)
    assert pause.kind == "mail"
    assert [int(message.payload) for message in await world.claim(10)] == [3]
    assert not await world.claim(10)
    assert await world.queue.resume(kind="mail")
    world.clock.advance(301)
    found = await world.claim(10)
    assert [(int(message.payload), message.attempt) for message in found] == [(1, 1), (2, 1)]


@case("pause", "a kind that is paused for a time starts at its end")
async def timed_kind(world: World) -> None:
    await world.publish(1, kind="mail")
    await world.queue.pause(kind="mail", duration=8)
    assert not await world.claim(10)
    world.clock.advance(9)
    assert int((await world.claim_one()).payload) == 1


@case("pause", "the empty kind can be paused too, and is not the whole queue")
async def empty_kind(world: World) -> None:
    await world.publish(1)
    await world.publish(2, kind="sms")
    await world.queue.pause(kind="")
    assert [int(message.payload) for message in await world.claim(10)] == [2]
    assert not await world.queue.resume()
    assert await world.queue.resume(kind="")


@case("pause", "a channel paused for a time starts again by itself")
async def timed_channel(world: World) -> None:
    await world.publish(1, 2, channel="a")
    await world.publish(3, channel="b")
    await world.queue.channel("a").pause(duration=60)
    assert [message.channel for message in await world.claim(10)] == ["b"]
    claim = await world.claim(10)
    assert claim.status is ClaimStatus.BLOCKED
    assert claim.look_again is not None and claim.look_again <= timedelta(seconds=60)
    policy = await world.queue.channel("a").policy()
    assert policy.paused and policy.paused_until is not None
    for page in (
        await world.queue.channels(queue=world.queue.name),
        await world.queue.channels(queue=world.queue.name, channel="a"),
    ):
        assert [info.policy for info in page if info.channel == "a"] == [policy]
    await world.publish(4, channel="a")
    world.clock.advance(61)
    (info,) = await world.queue.channels(queue=world.queue.name, channel="a")
    assert (info.policy.paused, info.policy.paused_until) == (False, None)
    assert [int(message.payload) for message in await world.drain()] == [1, 2, 4]
    await world.upkeep()
    assert not (await world.queue.channel("a").policy()).paused


@case("pause", "a channel paused for a time can be resumed before, or paused for good")
async def channel_changes(world: World) -> None:
    await world.publish(1, 2, channel="a")
    channel = world.queue.channel("a")
    await channel.pause(duration=60)
    await channel.resume()
    assert (await channel.policy()).paused_until is None
    assert int((await world.claim_one()).payload) == 1
    await channel.pause(duration=60)
    await channel.pause()
    world.clock.advance(61)
    await world.upkeep()
    assert (await world.claim(10)).status is ClaimStatus.BLOCKED
    assert (await channel.policy()).paused


@case("pause", "a limit set while a channel is paused for a time leaves the pause")
async def limited_meanwhile(world: World) -> None:
    await world.publish(1, channel="a")
    channel = world.queue.channel("a")
    await channel.pause(duration=60)
    policy = await channel.limit(concurrency=1)
    assert policy.paused and policy.paused_until is not None
    assert not await world.claim()
    world.clock.advance(61)
    assert int((await world.claim_one()).payload) == 1


@case("pause", "a throttled channel starts nothing for so long, and says why")
async def throttled(world: World) -> None:
    await world.publish(1, channel="a")
    channel = world.queue.channel("a")
    await channel.throttle(60)
    claim = await world.claim(10)
    assert claim.status is ClaimStatus.BLOCKED
    assert claim.look_again is not None and claim.look_again <= timedelta(seconds=60)
    policy = await channel.policy()
    assert policy.paused and policy.throttled and policy.paused_until is not None
    for page in (
        await world.queue.channels(queue=world.queue.name),
        await world.queue.channels(queue=world.queue.name, channel="a"),
    ):
        assert [(info.policy, info.waits_for) for info in page] == [(policy, "throttled")]
    world.clock.advance(61)
    (info,) = await world.queue.channels(queue=world.queue.name, channel="a")
    assert (info.policy, info.waits_for) == (Policy(), None)
    assert int((await world.claim_one()).payload) == 1
    await world.upkeep()
    assert not (await channel.policy()).throttled


@case("pause", "a throttle makes a pause longer, never shorter, and a resume ends it")
async def throttled_and_paused(world: World) -> None:
    await world.publish(1, channel="a")
    channel = world.queue.channel("a")
    await channel.throttle(60)
    first = (await channel.policy()).paused_until
    await channel.throttle(30)
    assert (await channel.policy()).paused_until == first
    await channel.throttle(90)
    longer = await channel.policy()
    assert first is not None and longer.paused_until is not None and longer.paused_until > first
    await channel.pause()
    await channel.throttle(90)
    paused = await channel.policy()
    assert (paused.paused, paused.paused_until, paused.throttled) == (True, None, False)
    await channel.resume()
    await channel.throttle(60)
    await channel.resume()
    assert await channel.policy() == Policy()
    assert int((await world.claim_one()).payload) == 1


@case("pause", "what cannot be is refused")
async def refused(world: World) -> None:
    with raises(InvalidTime):
        await world.queue.pause(duration=-1)
    with raises(InvalidTime):
        await world.queue.channel("a").pause(duration=0)
    with raises(InvalidTime):
        await world.queue.channel("a").throttle(-1)
    with raises(InvalidName):
        await world.queue.pause(queue="")
    with raises(InvalidName):
        await world.queue.resume(kind="x" * 300)
