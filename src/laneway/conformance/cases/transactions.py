"""The caller's own transaction: publish and settle with its commit, or not at all."""

from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, LeaseLost
from laneway.model import NewMessage


@case("transaction", "a publish is seen when the caller commits, not before")
async def commit(world: World) -> None:
    async with await world.caller() as mine:
        await world.queue.publish(1, channel="a", connection=mine.connection)
        assert not await world.queue.claim()
        await mine.commit()
    await world.claim_one()


@case("transaction", "a publish that is rolled back leaves nothing, not even its key")
async def rollback(world: World) -> None:
    async with await world.caller() as mine:
        await world.queue.publish(1, key="k", connection=mine.connection)
        await world.queue.publish_many([2, 3], connection=mine.connection)
        await mine.rollback()
    claim = await world.queue.claim()
    assert not claim and claim.look_again is None
    assert not [n for n in await world.queue.stats() if n.queue == world.name]
    assert (await world.queue.publish(4, key="k")).status == "published"


@case("transaction", "a savepoint takes back what came after it")
async def savepoint(world: World) -> None:
    async with await world.caller() as mine:
        await world.queue.publish("kept", key="k", connection=mine.connection)
        await mine.savepoint()
        await world.queue.publish("gone", key="l", connection=mine.connection)
        await mine.rollback_to_savepoint()
        await world.queue.publish("also kept", key="l", connection=mine.connection)
        await mine.commit()
    assert [m.text() for m in await world.drain()] == ["kept", "also kept"]


@case("transaction", "every settling verb is undone with the caller's transaction")
async def settle_rollback(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    hour = timedelta(hours=1)
    async with await world.caller() as mine:
        for verb in ("complete", "defer", "fail", "give_back", "extend"):
            await mine.savepoint()
            await getattr(message, verb)(connection=mine.connection)
            await mine.rollback_to_savepoint()
        await message.defer(hour, state="x", connection=mine.connection)
        await mine.rollback()
    assert await world.queue.history(message.id) == []
    await message.complete()


@case("transaction", "completing is exactly-once with what the caller writes beside it")
async def settle_commit(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    async with await world.caller() as mine:
        await world.queue.publish("effect", channel="out", connection=mine.connection)
        await message.complete(connection=mine.connection)
        await mine.commit()
    with raises(LeaseLost):
        await message.complete()
    assert [m.text() for m in await world.drain()] == ["effect"]


@case("transaction", "a lost lease is told and does not break the caller's other work")
async def lost(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    await message.complete()
    async with await world.caller() as mine:
        with raises(LeaseLost):
            await message.complete(connection=mine.connection)
        assert await mine.works()
        await world.queue.publish(2, connection=mine.connection)
        await mine.commit()
    await world.claim_one()


@case("transaction", "a full channel is told and does not break the caller's other work")
async def full(world: World) -> None:
    await world.queue.channel("a").limit(backlog=1)
    await world.publish(1, channel="a")
    async with await world.caller() as mine:
        with raises(BacklogFull):
            await world.queue.publish(2, channel="a", connection=mine.connection)
        assert await mine.works()
        await world.queue.publish(3, channel="b", connection=mine.connection)
        await mine.commit()
    assert sorted(m.json() for m in await world.drain()) == [1, 3]


@case("transaction", "one left open delays no other publish, claim or complete, and hides nothing")
async def left_open(world: World) -> None:
    world.needs("open transactions")
    await world.fill("known", 1)
    await (await world.claim_one()).complete()
    async with await world.caller() as mine:
        for channel in ("known", "new"):
            await world.queue.publish("open", channel=channel, connection=mine.connection)
        for channel in ("known", "new", "other"):
            await world.publish(channel, channel=channel)
        found = await world.drain()
        assert sorted(m.text() for m in found) == ["known", "new", "other"]
        await world.queue.complete(found)
        world.clock.advance(60)
        await world.upkeep()
        assert not await world.queue.claim()
        await mine.commit()
    assert sorted(m.channel for m in await world.drain()) == ["known", "new"]


@case("transaction", "opposite orders of channels do not deadlock")
async def opposite(world: World) -> None:
    world.needs("open transactions")
    async with await world.caller() as one, await world.caller() as two:
        for mine, names in ((one, "ab"), (two, "ba")):
            await world.queue.publish(1, channel=names[0], connection=mine.connection)
        for mine, names in ((one, "ab"), (two, "ba")):
            await world.queue.publish(2, channel=names[1], connection=mine.connection)
        await one.commit()
        await two.commit()
    assert len(await world.drain()) == 4


@case("transaction", "a committed settle frees the slot of a limited channel")
async def frees(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await world.queue.publish_many([NewMessage(n, channel="a") for n in range(2)])
    message = await world.claim_one()
    async with await world.caller() as mine:
        await message.complete(connection=mine.connection)
        assert not await world.queue.claim()
        await mine.commit()
    await world.claim_one()
