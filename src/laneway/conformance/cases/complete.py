"""complete: the message ends, once, by its holder."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost
from laneway.model import Settled


@case("complete", "the message is gone")
async def gone(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await message.complete()
    await world.expire(seconds=3600)
    assert not await world.queue.claim()
    assert [e.outcome for e in await world.queue.history(message.id)] == ["completed"]


@case("complete", "a second time is lost, and says which message and fence")
async def twice(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await message.complete()
    with raises(LeaseLost) as caught:
        await message.complete()
    assert (caught.error.message_id, caught.error.fence) == (message.id, message.fence)


@case("complete", "a stale fence ends nothing, though another holds the message")
async def stale(world: World) -> None:
    await world.publish(1)
    old = await world.claim_one()
    await world.expire()
    world.clock.advance(60)
    new = await world.claim_one()
    with raises(LeaseLost):
        await old.complete()
    assert new.fence > old.fence
    await new.complete()


@case("complete", "a lease that ran out but was not taken back is still its holder's")
async def late(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    world.clock.advance(300)
    await message.complete()
    await world.upkeep()
    assert not await world.queue.claim()


@case("complete", "a batch says per message what happened")
async def batch(world: World) -> None:
    await world.fill("a", 4)
    messages = list(await world.queue.claim(4))
    await messages[1].complete()
    await messages[3].defer(timedelta(hours=1))
    answers = await world.queue.complete(messages)
    assert answers == [
        Settled(m.id, m.fence, status)  # type: ignore[arg-type]
        for m, status in zip(messages, ("completed", "lost", "completed", "lost"), strict=True)
    ]
    assert [a.lost for a in answers] == [False, True, False, True]


@case("complete", "a message that is named twice in a batch ends once")
async def named_twice(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    answers = await world.queue.complete([message, message])
    assert answers[0].status == "completed"
    outcomes = [e.outcome for e in await world.queue.history(message.id)]
    assert outcomes.count("completed") == 1


@case("complete", "nothing to complete is no error")
async def nothing(world: World) -> None:
    assert await world.queue.complete([]) == []


@case("complete", "any client may settle with the fence")
async def elsewhere(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    other = world.client()
    assert [s.status for s in await other.complete([message])] == ["completed"]
