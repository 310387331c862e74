"""Leases that run out: back to their channel, later each time, and not for ever; extend: the
heartbeat."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost
from laneway.model import ClaimStatus


@case("lease", "one that ran out returns the message, with the next attempt and a higher fence")
async def returns(world: World) -> None:
    await world.publish(1)
    first = await world.claim_one()
    world.clock.advance(30)
    report = await world.queue.upkeep()
    assert report.ran and report.expired >= 1
    while report.expired:  # one goes so far only, and other cases have left leases too
        report = await world.queue.upkeep()
    world.clock.advance(60)
    second = await world.claim_one()
    assert (second.id, second.attempt) == (first.id, 2)
    assert second.fence > first.fence


@case("lease", "until its last moment it is not taken back")
async def not_before(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    world.clock.advance(29.999)
    await world.upkeep()
    assert [s.status for s in await world.queue.extend([message])] == ["extended"]


@case("lease", "it backs off, twice as long each time, up to the most")
async def backoff(world: World) -> None:
    async with world.configured(
        backoff_initial=timedelta(seconds=2), backoff_max=timedelta(seconds=10)
    ):
        await world.publish(1)
        waits = []
        for _ in range(5):
            await world.claim_one()
            await world.expire()
            claim = await world.queue.claim()
            assert (len(claim), claim.status) == (0, ClaimStatus.EMPTY)
            assert claim.look_again is not None
            waits.append(claim.look_again.total_seconds())
            world.clock.advance(waits[-1])
        assert waits == [2, 4, 8, 10, 10]


@case("lease", "after max_attempts it becomes a dead letter before the payload leaves again")
async def max_attempts(world: World) -> None:
    await world.publish(1, max_attempts=2)
    for attempt in (1, 2):
        message = await world.claim_one()
        assert message.attempt == attempt
        await world.expire()
        world.clock.advance(600)
    assert not await world.queue.claim()
    (letter,) = await world.queue.dead_letters.list(queue=world.name)
    assert (letter.id, letter.reason, letter.attempt) == (message.id, "max_attempts", 2)
    assert letter.error


@case("lease", "failed tries and expiries use up the same budget")
async def one_budget(world: World) -> None:
    await world.publish(1, max_attempts=2)
    await (await world.claim_one()).defer(error="no")
    await world.claim_one()
    await world.expire()
    assert len(await world.queue.dead_letters.list(queue=world.name)) == 1


@case("lease", "one that ran out holds its slot until it is taken back")
async def holds_slot(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await world.fill("a", 2)
    await world.claim_one()
    world.clock.advance(3600)
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await world.upkeep()
    await world.claim_one()


@case("lease", "a message that came back obeys its channel's limit")
async def obeys_limit(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=2)
    await world.fill("a", 4)
    assert len(await world.queue.claim(10)) == 2
    await world.expire()
    world.clock.advance(600)
    assert len(await world.queue.claim(10)) == 2
    assert (await world.queue.claim(10)).status is ClaimStatus.BLOCKED


@case("lease", "a message that came back waits behind what is due before it")
async def waits_turn(world: World) -> None:
    first, second = await world.publish(1, 2)
    assert (await world.claim_one()).id == first
    await world.expire()
    world.clock.advance(60)
    assert [m.id for m in await world.drain(1)] == [second, first]


@case("lease", "of a batch only the leases that ran out come back")
async def some(world: World) -> None:
    await world.fill("a", 2)
    short = await world.claim_one(lease=timedelta(seconds=5))
    long = await world.claim_one(lease=timedelta(minutes=5))
    await world.expire(6)
    assert [s.status for s in await world.queue.complete([short, long])] == ["lost", "completed"]


@case("lease", "its holder is told so by every verb")
async def told(world: World) -> None:
    await world.publish(1)
    old = await world.claim_one()
    await world.expire()
    world.clock.advance(60)
    new = await world.claim_one()
    for verb in (old.complete, old.defer, old.fail, old.extend, old.give_back):
        with raises(LeaseLost):
            await verb()
    await new.complete()


@case("lease", "a client takes them back by itself when its upkeep is due")
async def by_itself(world: World) -> None:
    client = world.client(upkeep_every=timedelta(0))
    await world.publish(1)
    await world.claim_one()
    world.clock.advance(31)
    assert not await client.claim()
    world.clock.advance(60)
    assert len(await client.claim()) == 1


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
