"""One clock: over minute, hour, day, summer time, leap day and year edges."""

from datetime import UTC, datetime, timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World

EDGES = [
    datetime(2027, 3, 28, 0, 59, 59, tzinfo=UTC),  # summer time begins in Europe
    datetime(2027, 10, 31, 0, 59, 59, tzinfo=UTC),  # and ends
    datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2028, 2, 28, 23, 59, 59, tzinfo=UTC),
    datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC),
    datetime(2038, 1, 19, 3, 14, 7, tzinfo=UTC),
]


@case("clock", "delays, leases and back-off are as long as ever over every edge")
async def edges(world: World) -> None:
    for edge in EDGES:
        world.clock.now = edge
        await world.queue.publish(1, delay=timedelta(seconds=2))
        assert not await world.queue.claim()
        world.clock.advance(2)
        message = await world.claim_one()
        assert message.until == edge + timedelta(seconds=32)
        world.clock.advance(29.5)
        await world.upkeep()
        assert await message.extend() == world.later(30)
        await world.expire()
        world.clock.advance(1)
        again = await world.claim_one()
        await again.complete()
        assert [e.outcome for e in await world.queue.history(message.id)] == [
            "expired",
            "completed",
        ]


@case("clock", "a delay of a day is a day of 24 hours, whatever the zone says")
async def day(world: World) -> None:
    world.clock.now = datetime(2027, 3, 27, 12, 0, tzinfo=UTC)
    await world.queue.publish(1, delay=timedelta(days=1))
    claim = await world.queue.claim()
    assert claim.look_again == timedelta(days=1)
    world.clock.advance(86_399)
    assert not await world.queue.claim()
    world.clock.advance(1)
    assert (await world.claim_one()).due == datetime(2027, 3, 28, 12, 0, tzinfo=UTC)


@case("clock", "microseconds are kept")
async def microseconds(world: World) -> None:
    when = world.later(1).replace(microsecond=123_457)
    await world.queue.publish(1, at=when)
    world.clock.now = when - timedelta(microseconds=1)
    assert not await world.queue.claim()
    world.clock.now = when
    assert (await world.claim_one()).due == when


@case("clock", "is read at the moment of use, not at the start of the caller's transaction")
async def moment_of_use(world: World) -> None:
    client = world.client(clock=None)
    async with await world.caller() as mine:
        assert await mine.works()
        outside = await client.publish("outside")
        inside = await client.publish("inside", connection=mine.connection)
        await mine.commit()
    found = {m.id: m.published_at for m in await client.claim(10)}
    assert outside.id and inside.id and found[outside.id] < found[inside.id]
