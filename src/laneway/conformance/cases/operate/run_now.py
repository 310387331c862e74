"""run_now: scheduled messages become due now."""

from laneway.conformance.registry import case
from laneway.conformance.world import World


@case("run now", "a scheduled message is due now, and is counted once")
async def scheduled(world: World) -> None:
    (id,) = await world.publish(1, delay=3600, channel="a")
    assert not await world.claim()
    (answer,) = await world.queue.run_now([id])
    assert (answer.id, answer.status) == (id, "due")
    stats = await world.queue.channel("a").stats()
    assert (stats.waiting, stats.scheduled) == (1, 0)
    message = await world.claim_one()
    assert (message.id, message.attempt, message.due) == (id, 1, world.clock.now)
    await message.complete()
    world.clock.advance(3601)
    assert not await world.claim()
    stats = await world.queue.channel("a").stats()
    assert (stats.waiting, stats.scheduled) == (0, 0)


@case("run now", "a deferred message too; it keeps its state and its attempts")
async def deferred(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await message.defer(delay=3600, state=b"half")
    assert [x.status for x in await world.queue.run_now([message.id])] == ["due"]
    again = await world.claim_one()
    assert (again.id, again.attempt, again.state) == (message.id, 2, b"half")
    assert again.fence > message.fence


@case("run now", "the answer says what each one is, in the order of the call")
async def answers(world: World) -> None:
    (later,) = await world.publish(1, delay=60, channel="later")
    await world.publish(2, channel="leased")
    leased = (await world.claim_one()).id
    await world.publish(3, channel="dead")
    dead = await world.claim_one()
    await dead.fail()
    (due,) = await world.publish(4, channel="due")
    ids = [2**60, dead.id, leased, due, later, later]
    found = await world.queue.run_now(ids)
    assert [(x.id, x.status) for x in found] == list(
        zip(ids, ["absent", "dead", "leased", "waiting", "due", "due"], strict=True)
    )
    assert await world.queue.run_now([]) == []
    assert [x.status for x in await world.queue.run_now([later])] == ["waiting"]


@case("run now", "it starts after what was due before, and before what becomes due later")
async def order(world: World) -> None:
    (later,) = await world.publish(1, delay=3600, channel="a")
    await world.publish(2, channel="a")
    await world.publish(3, delay=30, channel="a")
    await world.queue.run_now([later])
    world.clock.advance(31)
    assert [int(message.payload) for message in await world.drain()] == [2, 1, 3]


@case("run now", "limits and pauses hold")
async def limits(world: World) -> None:
    ids = await world.publish(1, 2, delay=3600, channel="a")
    await world.queue.channel("a").limit(concurrency=1)
    await world.queue.run_now(ids)
    assert len(await world.claim(10)) == 1
    assert not await world.claim(10)
    (other,) = await world.publish(3, delay=3600, channel="b")
    await world.queue.channel("b").pause()
    await world.queue.run_now([other])
    assert not await world.claim(10)
    await world.queue.channel("b").resume()
    assert [message.id for message in await world.claim(10)] == [other]


@case("run now", "many of one channel at once, of several priorities")
async def many(world: World) -> None:
    low = await world.fill("a", 30, delay=3600)
    high = await world.fill("a", 5, delay=7200, priority=5)
    assert {x.status for x in await world.queue.run_now([*low, *high])} == {"due"}
    found = await world.drain(10)
    assert sorted(message.id for message in found) == sorted([*low, *high])
    # One start in ten goes to what has waited longest.
    assert {message.id for message in found[:6]} >= set(high)
