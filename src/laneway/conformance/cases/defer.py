"""defer: back for later, with saved state."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost
from laneway.model import KEEP


@case("defer", "the message comes back after the delay, with the next attempt")
async def delay(world: World) -> None:
    await world.publish("x")
    message = await world.claim_one()
    assert await message.defer(timedelta(seconds=5))
    assert (await world.queue.claim()).look_again == timedelta(seconds=5)
    world.clock.advance(5)
    again = await world.claim_one()
    assert (again.id, again.attempt) == (message.id, 2)
    assert again.due == world.clock.now
    assert again.published_at == message.published_at


@case("defer", "or at a time")
async def at(world: World) -> None:
    await world.publish("x")
    await (await world.claim_one()).defer(at=world.later(100))
    world.clock.advance(99.9)
    assert not await world.queue.claim()
    world.clock.advance(0.1)
    await world.claim_one()


@case("defer", "or at once")
async def at_once(world: World) -> None:
    await world.publish("x")
    await (await world.claim_one()).defer()
    assert (await world.claim_one()).attempt == 2


@case("defer", "state is kept, replaced or cleared, and these are three different things")
async def state(world: World) -> None:
    await world.publish("x")
    seen = []
    states: list[object] = [{"page": 1}, KEEP, b"raw", KEEP, "text", None, KEEP]
    for value in states:
        message = await world.claim_one()
        await message.defer(state=value)
        again = await world.claim_one()
        seen.append((again.state, again.state_type))
        await again.give_back()
    page = (b'{"page":1}', "application/json")
    raw = (b"raw", "application/octet-stream")
    assert [*seen[:4], *seen[5:]] == [page, page, raw, raw, (None, None), (None, None)]
    assert seen[4][0] == b"text"


@case("defer", "state survives give back, expiry and redrive")
async def state_survives(world: World) -> None:
    await world.publish("x")
    await (await world.claim_one()).defer(state=[1])
    await (await world.claim_one()).give_back()
    await world.claim_one()
    await world.expire()
    world.clock.advance(60)
    message = await world.claim_one()
    assert message.state_json() == [1]
    await message.fail()
    await world.queue.dead_letters.redrive([message.id])
    assert (await world.claim_one()).state_json() == [1]


@case("defer", "without an error it is progress: the budget starts anew")
async def progress(world: World) -> None:
    await world.publish("x", max_attempts=2)
    for attempt in range(1, 8):
        message = await world.claim_one()
        assert message.attempt == attempt
        assert await message.defer()
    assert await (await world.claim_one()).defer(error="once")
    assert await (await world.claim_one()).defer()
    assert await (await world.claim_one()).defer(error="once")
    assert not await (await world.claim_one()).defer(error="twice")


@case("defer", "with an error or a reason it is a failed try, and the last one makes a dead letter")
async def failed_tries(world: World) -> None:
    await world.publish("x", max_attempts=3)
    assert await (await world.claim_one()).defer(error=ValueError("one"))
    assert await (await world.claim_one()).defer(reason="two")
    message = await world.claim_one()
    assert not await message.defer(error="three")
    assert not await world.queue.claim()
    (letter,) = await world.queue.dead_letters.list(queue=world.name)
    assert (letter.id, letter.reason, letter.error) == (message.id, "max_attempts", "three")
    assert letter.attempt == 3


@case("defer", "a stale holder changes neither time nor state")
async def stale(world: World) -> None:
    await world.publish("x")
    old = await world.claim_one()
    await old.give_back()
    new = await world.claim_one()
    with raises(LeaseLost):
        await old.defer(timedelta(hours=1), state="stolen")
    await new.give_back()
    assert (await world.claim_one()).state is None


@case("defer", "a batch says per message what happened")
async def batch(world: World) -> None:
    await world.fill("a", 3, max_attempts=1)
    messages = list(await world.queue.claim(3))
    await messages[0].complete()
    answers = await world.queue.defer(messages, error="no")
    assert [a.status for a in answers] == ["lost", "dead", "dead"]


@case("defer", "a deferred message waits its turn behind what is due before it")
async def turn(world: World) -> None:
    first, second, third = await world.publish(1, 2, 3)
    message = await world.claim_one()
    assert message.id == first
    await message.defer()
    assert [m.id for m in await world.drain(1)] == [second, third, first]


@case("defer", "its holder is told how many tries failed since the last progress")
async def failures(world: World) -> None:
    await world.publish(1)
    told = []
    for error in ("a", "b", None, "c", None):
        message = await world.claim_one()
        told.append((message.attempt, message.failures))
        await message.defer(error=error)
    assert told == [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)]


@case("schedules", "a message can repeat itself by deferring")
async def by_defer(world: World) -> None:
    (id,) = await world.publish("again and again", max_attempts=2)
    for round_ in range(1, 6):
        message = await world.claim_one()
        assert (message.id, message.attempt, message.state_json()) == (
            id,
            round_,
            {"rounds": round_ - 1} if round_ > 1 else None,
        )
        await message.defer(timedelta(hours=1), state={"rounds": round_})
        assert not await world.queue.claim()
        world.clock.advance(3600)


@case("schedules", "a self-repeating message survives the worker that held it")
async def defer_and_crash(world: World) -> None:
    (id,) = await world.publish(1)
    await (await world.claim_one()).defer(timedelta(hours=1))
    world.clock.advance(3600)
    await world.claim_one()
    await world.expire()
    world.clock.advance(60)
    message = await world.claim_one()
    assert message.id == id
    assert await message.defer(timedelta(hours=1))
