"""Keys: a second publish with a live key changes nothing."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull
from laneway.model import NewMessage, Published

MINUTE = timedelta(minutes=1)


@case("key", "a live key answers with the message that has it, whatever the second one says")
async def existing(world: World) -> None:
    first = await world.queue.publish("first", key="k", channel="a")
    again = await world.queue.publish("second", key="k", channel="b", priority=9)
    assert again == Published(first.id, "existing") and again.existing
    assert [(m.text(), m.channel) for m in await world.drain()] == [("first", "a")]


@case("key", "a key lives while its message is leased, deferred or a dead letter")
async def lives(world: World) -> None:
    first = await world.queue.publish(1, key="k")

    async def taken() -> bool:
        return await world.queue.publish(2, key="k") == Published(first.id, "existing")

    message = await world.claim_one()
    assert await taken()
    await message.defer()
    assert await taken()
    await (await world.claim_one()).fail()
    assert await taken()


@case("key", "complete, cancel and discard free it")
async def freed(world: World) -> None:
    for end in ("complete", "cancel", "discard"):
        published = await world.queue.publish(end, key="k")
        assert published.status == "published" and published.id
        if end == "cancel":
            await world.queue.cancel([published.id])
            continue
        message = await world.claim_one()
        if end == "complete":
            await message.complete()
        else:
            await message.fail()
            assert await world.queue.dead_letters.discard([published.id]) == 1
    assert (await world.queue.publish("last", key="k")).status == "published"


@case("key", "with a window it lives on after the end, and no longer")
async def window(world: World) -> None:
    first = await world.queue.publish(1, key="k", key_window=MINUTE)
    world.clock.advance(3600)
    await (await world.claim_one()).complete()
    world.clock.advance(59)
    assert await world.queue.publish(2, key="k") == Published(first.id, "existing")
    world.clock.advance(1)
    second = await world.queue.publish(3, key="k")
    assert second.status == "published" and second.id != first.id
    assert [m.json() for m in await world.drain()] == [3]


@case("key", "upkeep clears the window and changes nothing else")
async def window_upkeep(world: World) -> None:
    await world.queue.publish(1, key="k", key_window=MINUTE)
    await (await world.claim_one()).complete()
    await world.upkeep()
    assert (await world.queue.publish(2, key="k")).existing
    world.clock.advance(60)
    await world.upkeep()
    assert not (await world.queue.publish(2, key="k")).existing


@case("key", "queues have keys of their own")
async def per_queue(world: World) -> None:
    await world.queue.publish(1, key="k")
    other = await world.queue.publish(2, key="k", queue=world.name + " other")
    assert other.status == "published"


@case("key", "a key twice in one batch publishes once")
async def in_batch(world: World) -> None:
    results = await world.queue.publish_many(
        [NewMessage(n, key=key) for n, key in enumerate(("a", "b", "a", None, "b", None))]
    )
    status = [r.status for r in results]
    assert status == ["published", "published", "existing", "published", "existing", "published"]
    assert (results[2].id, results[4].id) == (results[0].id, results[1].id)
    assert sorted(m.json() for m in await world.drain()) == [0, 1, 3, 5]


@case("key", "of many at once exactly one publishes")
async def race(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    results = await asyncio.gather(*(c.publish(1, key="k") for c in clients * 3))
    assert len({r.id for r in results}) == 1
    assert sorted(r.status for r in results) == ["existing"] * 11 + ["published"]
    assert len(await world.drain()) == 1


@case("key", "a refused message does not keep its key")
async def refused(world: World) -> None:
    channel = world.queue.channel("full")
    await channel.limit(backlog=0)
    with raises(BacklogFull):
        await world.queue.publish(1, channel="full", key="k")
    await channel.unlimited()
    assert (await world.queue.publish(2, channel="full", key="k")).status == "published"


@case("key", "a redriven message has its key again")
async def redriven(world: World) -> None:
    first = await world.queue.publish(1, key="k")
    await (await world.claim_one()).fail()
    await world.queue.dead_letters.redrive(queue=world.name)
    assert (await world.queue.publish(2, key="k")).id == first.id
    message = await world.claim_one()
    assert message.key == "k"
    await message.complete()
    assert not (await world.queue.publish(3, key="k")).existing


@case("key", "a publish that is repeated after an unknown outcome does not double")
async def repeated(world: World) -> None:
    messages = [NewMessage(n, key=f"k{n}") for n in range(10)]
    first = await world.queue.publish_many(messages[:6])
    second = await world.queue.publish_many(messages)
    assert [r.id for r in second[:6]] == [r.id for r in first]
    assert [r.existing for r in second] == [True] * 6 + [False] * 4
    assert sorted(m.json() for m in await world.drain()) == list(range(10))
