"""give back: the work was not begun."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost


@case("give back", "the message waits in its old place and the attempt is not counted")
async def old_place(world: World) -> None:
    ids = await world.publish(1, 2, 3)
    message = await world.claim_one()
    await message.give_back()
    found = await world.drain(1)
    assert [m.id for m in found] == ids
    assert [m.attempt for m in found] == [1, 1, 1]


@case("give back", "with a delay it comes back later")
async def later(world: World) -> None:
    await world.publish(1)
    await (await world.claim_one()).give_back(timedelta(seconds=10))
    assert (await world.queue.claim()).look_again == timedelta(seconds=10)
    world.clock.advance(10)
    assert (await world.claim_one()).attempt == 1


@case("give back", "as often as one likes, the budget is not touched")
async def often(world: World) -> None:
    await world.publish(1, max_attempts=1)
    for _ in range(5):
        message = await world.claim_one()
        assert message.attempt == 1
        await message.give_back()
    assert await world.claim_one()


@case("give back", "after a counted try the count stays")
async def after_try(world: World) -> None:
    await world.publish(1)
    await (await world.claim_one()).defer()
    await (await world.claim_one()).give_back()
    assert (await world.claim_one()).attempt == 2


@case("give back", "frees the slot of a full channel, for the same message too")
async def frees(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    ids = await world.fill("a", 2)
    for _ in range(3):
        message = await world.claim_one()
        assert message.id == ids[0]
        await message.give_back()


@case("give back", "wakes a client that found nothing before")
async def wakes(world: World) -> None:
    await world.fill("a", 3)
    messages = await world.queue.claim(3)
    other = world.client()
    for message in messages:
        assert not await other.claim()
        await message.give_back()
        (again,) = await other.claim()
        assert again.id == message.id
        world.clock.advance(1)


@case("give back", "a stale holder gives nothing back")
async def stale(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await message.complete()
    with raises(LeaseLost):
        await message.give_back()
    assert not await world.queue.claim()


@case("give back", "a batch says per message what happened")
async def batch(world: World) -> None:
    ids = await world.fill("a", 3)
    messages = list(await world.queue.claim(3))
    await messages[0].complete()
    answers = await world.queue.give_back(list(reversed(messages)))
    assert [a.status for a in answers] == ["given_back", "given_back", "lost"]
    assert [m.id for m in await world.drain()] == ids[1:]
