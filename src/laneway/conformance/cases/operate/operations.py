"""Bulk operations on dead letters: previewed, in parts, cancellable."""

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import CountChanged, InvalidOption
from laneway.model import NewMessage


async def _dead(world: World, count: int, kind: str = "mail", channel: str = "a") -> list[int]:
    """So many dead letters, all in the queue of this case."""
    messages = [NewMessage(n, kind=kind, channel=channel) for n in range(count)]
    await world.queue.publish_many(messages)
    ids = []
    while claim := await world.claim(1000):
        await world.queue.fail(claim, "broken")
        ids += [message.id for message in claim]
    world.clock.advance(0.001)
    return ids


@case("operation", "a preview counts and shows the first; a redrive of as many ends exactly")
async def redrive(world: World) -> None:
    ids = await _dead(world, 30)
    other = await _dead(world, 3, kind="sms")
    operations = world.queue.operations
    seen = await operations.preview(queue=world.name, kind="mail")
    assert (seen.count, seen.or_more, len(seen.sample)) == (30, False, 5)
    begun = await operations.start(
        "redrive", queue=world.name, kind="mail", expected=30, max_attempts=7, actor="ann ☃"
    )
    assert (begun.state, begun.total, begun.done, begun.actor) == ("running", 30, 0, "ann ☃")
    assert begun.wanted == {"queue": world.name, "kind": "mail"}
    assert begun.options == {"max_attempts": 7}
    ended = await operations.run(begun.id)
    assert (ended.state, ended.done, ended.ended_at) == ("done", 30, world.clock.now)
    found = await world.drain()
    assert sorted(message.id for message in found) == sorted(ids)
    assert {message.max_attempts for message in found} == {7}
    left = await world.queue.dead_letters.list(queue=world.name)
    assert [letter.id for letter in reversed(left)] == other


@case("operation", "it is refused if the count is not as expected, unless that much is allowed")
async def refused(world: World) -> None:
    await _dead(world, 4)
    operations = world.queue.operations
    with raises(CountChanged) as caught:
        await operations.start("discard", queue=world.name, expected=3)
    assert caught.error.count == 4
    assert len(await world.queue.dead_letters.list(queue=world.name)) == 4
    begun = await operations.start("discard", queue=world.name, expected=3, allowed=1)
    assert (await operations.run(begun.id)).done == 4
    with raises(InvalidOption):
        await operations.start("discard")
    with raises(InvalidOption):
        await operations.start("discard", queue=world.name, max_attempts=3)
    with raises(InvalidOption):
        await operations.get(2**60)


@case("operation", "what dies after the start is not taken, also if it was redriven by it")
async def snapshot(world: World) -> None:
    await _dead(world, 5)
    begun = await world.queue.operations.start("redrive", queue=world.name)
    world.clock.advance(1)
    late = await _dead(world, 2, kind="late")
    assert (await world.queue.operations.run(begun.id)).done == 5
    again = [message.id for message in await world.claim(100)]
    assert len(again) == 5
    letters = await world.queue.dead_letters.list(queue=world.name)
    assert [letter.id for letter in reversed(letters)] == late


@case("operation", "upkeep of any client does the work, in parts")
async def by_upkeep(world: World) -> None:
    await _dead(world, 1500)
    begun = await world.queue.operations.start("discard", queue=world.name, expected=1500)
    other = world.client()
    for _ in range(200):
        await other.upkeep()
        if (await other.operations.get(begun.id)).state != "running":
            break
    ended = await other.operations.get(begun.id)
    assert (ended.state, ended.done) == ("done", 1500)
    assert not await world.queue.dead_letters.list(queue=world.name)


@case("operation", "cancelled between two parts, it leaves the rest as it was")
async def cancelled(world: World) -> None:
    await _dead(world, 1200)
    operations = world.queue.operations
    begun = await operations.start("discard", queue=world.name)
    part = await operations.step(begun.id)
    assert part is not None and (part.state, part.done) == ("running", 1000)
    ended = await operations.cancel(begun.id)
    assert (ended.state, ended.done) == ("cancelled", 1000)
    assert await operations.step(begun.id) is None
    assert await world.queue.dead_letters.count(queue=world.name) == 200
    assert (await operations.cancel(begun.id)).state == "cancelled"
    assert begun.id in [one.id for one in await operations.list(limit=1000)]


@case("operation", "letters that somebody else took meanwhile are not counted")
async def beside_others(world: World) -> None:
    ids = await _dead(world, 10)
    begun = await world.queue.operations.start("redrive", queue=world.name, expected=10)
    assert await world.queue.dead_letters.discard(ids[:4]) == 4
    ended = await world.queue.operations.run(begun.id)
    assert (ended.state, ended.done, ended.total) == ("done", 6, 10)


@case("operation", "times of the filter are kept to the microsecond")
async def by_time(world: World) -> None:
    await _dead(world, 2)
    world.clock.advance(5)
    middle = world.clock.now
    await _dead(world, 3)
    begun = await world.queue.operations.start("discard", queue=world.name, since=middle)
    assert (await world.queue.operations.run(begun.id)).done == 3
    begun = await world.queue.operations.start("discard", queue=world.name, until=middle)
    assert (await world.queue.operations.run(begun.id)).done == 2
