"""once: an effect under a key, in the caller's transaction."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, InvalidTime


@case("once", "true the first time, false after its commit")
async def first(world: World) -> None:
    async with await world.caller() as mine:
        assert await world.queue.once(mine.connection, "invoice:1")
        assert not await world.queue.once(mine.connection, "invoice:1")
        await mine.commit()
    async with await world.caller() as other:
        assert not await world.queue.once(other.connection, "invoice:1")
        assert await world.queue.once(other.connection, "invoice:2")
        await other.commit()


@case("once", "a rolled-back transaction has done nothing")
async def rolled_back(world: World) -> None:
    async with await world.caller() as mine:
        assert await world.queue.once(mine.connection, "invoice:1")
        await mine.rollback()
    async with await world.caller() as other:
        assert await world.queue.once(other.connection, "invoice:1")
        await other.commit()


@case("once", "keys belong to their queue, and a message has one of its own")
async def scopes(world: World) -> None:
    await world.publish(1, 2)
    one, two = await world.queue.claim(2)
    async with await world.caller() as mine:
        assert await one.once(mine.connection)
        assert not await one.once(mine.connection)
        assert await two.once(mine.connection)
        assert await one.once(mine.connection, "invoice")
        assert not await two.once(mine.connection, "invoice")
        assert await world.queue.once(mine.connection, "invoice", queue=world.name + " other")
        await mine.commit()


@case("once", "is forgotten after its time")
async def forgotten(world: World) -> None:
    keep = timedelta(hours=1)
    async with await world.caller() as mine:
        assert await world.queue.once(mine.connection, "invoice:1", keep=keep)
        await mine.commit()
    world.clock.advance(3599)
    async with await world.caller() as mine:
        assert not await world.queue.once(mine.connection, "invoice:1", keep=keep)
        await mine.commit()
    world.clock.advance(2)
    async with await world.caller() as mine:
        assert await world.queue.once(mine.connection, "invoice:1", keep=keep)
        assert not await world.queue.once(mine.connection, "invoice:1", keep=keep)
        await mine.commit()


@case("once", "of two transactions at once only one is told true")
async def race(world: World) -> None:
    world.needs("open transactions")
    async with await world.caller() as mine, await world.caller() as other:
        assert await world.queue.once(mine.connection, "invoice:1")
        asking = asyncio.create_task(world.queue.once(other.connection, "invoice:1"))
        await asyncio.sleep(0.05)
        await mine.commit()
        assert not await asking
        await other.commit()
    async with await world.caller() as mine, await world.caller() as other:
        assert await world.queue.once(mine.connection, "invoice:2")
        asking = asyncio.create_task(world.queue.once(other.connection, "invoice:2"))
        await asyncio.sleep(0.05)
        await mine.rollback()
        assert await asking
        await other.commit()


@case("once", "needs the caller's connection and a duration")
async def refused(world: World) -> None:
    with raises(InvalidOption):
        await world.queue.once(None, "invoice:1")
    async with await world.caller() as mine:
        with raises(InvalidTime):
            await world.queue.once(mine.connection, "a", keep=timedelta(-1))
