"""History: one row per finished attempt."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LeaseLost


async def a_life(world: World) -> int:
    """Deferred, retried, given back, expired, failed, redriven, completed, and once stale."""
    (id,) = await world.publish({"n": 1}, channel="a", kind="k", priority=2)
    await (await world.claim_one()).defer()
    await (await world.claim_one()).defer(error=ValueError("bad"))
    await (await world.claim_one()).give_back()
    await world.claim_one()
    await world.expire()
    world.clock.advance(60)
    await (await world.claim_one()).fail("hopeless")
    await world.queue.dead_letters.redrive([id])
    message = await world.claim_one()
    world.clock.advance(2)
    await message.complete()
    with raises(LeaseLost):
        await message.complete()
    return id


@case("history", "tells a whole life")
async def life(world: World) -> None:
    id = await a_life(world)
    entries = await world.queue.history(id)
    assert [e.outcome for e in entries] == [
        "deferred",
        "retried",
        "given_back",
        "expired",
        "failed",
        "redriven",
        "completed",
        "stale",
    ]
    assert [e.terminal for e in entries].count(True) == 1 and entries[6].terminal
    assert [e.attempt for e in entries[:5]] == [1, 2, 3, 3, 4]
    assert [e.dead for e in entries].index(True) == 4
    assert (entries[1].error_type, entries[1].error) == ("ValueError", "bad")
    assert entries[4].reason == "hopeless"
    fences = [e.fence for e in entries[:5] if e.fence is not None]
    assert fences == sorted(set(fences)) and len(fences) == 5


@case("history", "a row has the fields of its attempt")
async def fields(world: World) -> None:
    published_at = world.clock.now
    (id,) = await world.publish({"n": 1}, channel="a", kind="k", priority=2)
    world.clock.advance(3)
    message = await world.claim_one()
    world.clock.advance(2)
    await message.complete()
    (entry,) = await world.queue.history(id)
    assert (entry.message_id, entry.queue, entry.channel) == (id, world.name, "a")
    assert (entry.kind, entry.priority, entry.attempt) == ("k", 2, 1)
    assert (entry.fence, entry.worker) == (message.fence, world.queue.worker)
    assert entry.first_published_at == entry.published_at == entry.due == published_at
    assert (entry.claimed_at, entry.ended_at) == (message.claimed_at, world.clock.now)
    assert entry.payload_size == len(message.payload)
    assert (entry.reason, entry.error_type, entry.error, entry.dead) == (None, None, None, False)


@case("history", "failures only: what went well is not kept")
async def failures(world: World) -> None:
    async with world.configured(history="failures"):
        id = await a_life(world)
        outcomes = [e.outcome for e in await world.queue.history(id)]
    assert outcomes == ["retried", "expired", "failed", "redriven", "stale"]


@case("history", "none: nothing is kept, and everything works")
async def none(world: World) -> None:
    async with world.configured(history="none"):
        id = await a_life(world)
        assert await world.queue.history(id) == []


@case("history", "every message has exactly one terminal row, however it ended")
async def terminal(world: World) -> None:
    ids = await world.fill("a", 4)
    short = (await world.queue.publish(5, expires_in=timedelta(seconds=1), channel="b")).id
    assert short
    held = list(await world.queue.claim(2))
    await held[0].complete()
    await held[1].fail()
    await world.queue.dead_letters.discard([held[1].id])
    await world.queue.cancel(ids[2:])
    world.clock.advance(10)
    await world.upkeep()
    left = await world.drain()
    await world.queue.complete(left)
    for id in [*ids, short]:
        assert sum(e.terminal for e in await world.queue.history(id)) == 1


@case("history", "of a message nobody knows is empty")
async def unknown(world: World) -> None:
    assert await world.queue.history(2**60) == []
