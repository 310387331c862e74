"""upkeep: by any process, by many at once."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World


@case("upkeep", "by many at once takes each lease back once")
async def together(world: World) -> None:
    await world.fill("a", 50)
    messages = await world.queue.claim(50)
    world.clock.advance(31)
    clients = [world.client() for _ in range(6)]
    reports = await asyncio.gather(*(client.upkeep() for client in clients))
    assert any(report.ran for report in reports)
    await world.upkeep()
    for message in messages:
        outcomes = [e.outcome for e in await world.queue.history(message.id)]
        assert outcomes == ["expired"]


@case("upkeep", "with nothing to do does nothing")
async def nothing(world: World) -> None:
    await world.upkeep()
    report = await world.queue.upkeep()
    assert (report.ran, report.expired, report.lapsed) == (True, 0, 0)


@case("upkeep", "beside claims and completions loses nothing")
async def beside(world: World) -> None:
    ids = await world.fill("a", 60)
    clients = [world.client() for _ in range(3)]
    done: list[int] = []

    async def work(number: int) -> None:
        while claim := await world.claim(5, clients[number]):
            answers = await clients[number].complete(claim)
            done.extend(a.id for a in answers if not a.lost)

    async def keep() -> None:
        for _ in range(10):
            await world.upkeep()

    await asyncio.gather(work(0), work(1), work(2), keep())
    done += [m.id for m in await world.drain()]
    assert sorted(done) == ids


@case("upkeep", "settings hold for all clients of the schema")
async def settings(world: World) -> None:
    async with world.configured(backoff_initial=timedelta(seconds=7)):
        other = world.client()
        assert (await other.settings()).backoff_initial == timedelta(seconds=7)
        await world.publish(1)
        await world.claim_one()
        await world.expire()
        assert (await other.claim()).look_again == timedelta(seconds=7)
