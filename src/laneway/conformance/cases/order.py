"""Order inside a channel: priority, due time, publish order."""

from datetime import timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.model import NewMessage


@case("order", "publish order, in one batch and over many calls")
async def publish_order(world: World) -> None:
    ids = await world.fill("a", 10)
    world.clock.advance(1)
    ids += await world.publish(*range(10), channel="a")
    assert [m.id for m in await world.drain(3)] == ids


@case("order", "an elder message whose commit came late, before a younger one")
async def late_commit(world: World) -> None:
    """The claims meanwhile have moved on; only news of the younger one is where they look."""
    world.needs("open transactions")
    async with await world.caller() as mine:
        elder = await world.queue.publish("elder", channel="a", connection=mine.connection)
        for number in range(3):
            world.clock.advance(1)
            await world.publish(number, channel="b")
            await world.claim_one()
        await mine.commit()
    (younger,) = await world.publish("younger", channel="a")
    assert [m.id for m in await world.drain(1)] == [elder.id, younger]


@case("order", "due time before publish order")
async def due(world: World) -> None:
    delays = [5, 1, 4, 2, 3]
    await world.queue.publish_many(
        [NewMessage(d, delay=timedelta(seconds=d), channel="a") for d in delays]
    )
    world.clock.advance(10)
    assert [m.json() for m in await world.drain(2)] == [1, 2, 3, 4, 5]


@case("order", "a message due earlier that is published later comes first")
async def due_earlier(world: World) -> None:
    first = await world.publish(1, channel="a")
    (early,) = await world.publish(2, channel="a", at=world.later(-100))
    assert [m.id for m in await world.drain(1)] == [early, *first]


@case("order", "higher priority first")
async def priority(world: World) -> None:
    await world.queue.publish_many([NewMessage(n, priority=n % 5, channel="a") for n in range(10)])
    assert [m.priority for m in await world.queue.claim(9)] == [4, 4, 3, 3, 2, 2, 1, 1, 0]


@case("order", "from the lowest priority to the highest")
async def whole_range(world: World) -> None:
    given = [100, 1, 0, 200, 99, 61, 60, 101]
    await world.queue.publish_many([NewMessage(n, priority=n, channel="a") for n in given])
    found = [await world.claim_one() for _ in given]
    assert [m.priority for m in found] == sorted(given, reverse=True)


@case("order", "all priorities at once, in one batch and one by one")
async def all_priorities(world: World) -> None:
    """One start in ten goes to the longest waiting: here that is the lowest one."""
    for number in range(201):
        await world.publish(number, channel="a", priority=number)
        world.clock.advance(0.001)
    batch = [m.priority for m in await world.queue.claim(100)]
    assert sorted(batch) == [*range(10), *range(111, 201)]
    rest = [(await world.claim_one()).priority for _ in range(101)]
    by_priority = [n for place, n in enumerate(rest, 1) if place % 10]
    assert by_priority == sorted(by_priority, reverse=True)
    assert rest[9::10] == sorted(rest[9::10]) and sorted(rest) == list(range(10, 111))


@case("order", "a higher priority overtakes those that wait already")
async def overtakes(world: World) -> None:
    await world.fill("a", 5)
    first = await world.claim_one()
    await world.fill("a", 2, priority=9)
    found = [first, *await world.drain(1)]
    assert [m.priority for m in found] == [0, 9, 9, 0, 0, 0, 0]


@case("order", "a higher priority overtakes many single publishes that nobody has looked at")
async def overtakes_many(world: World) -> None:
    await world.publish(*range(40), channel="a")
    (urgent,) = await world.publish("urgent", channel="a", priority=9)
    assert (await world.claim_one()).id == urgent


@case("order", "a high priority that is not due holds nobody up")
async def future_priority(world: World) -> None:
    await world.queue.publish_many(
        [NewMessage(n, priority=9, delay=timedelta(hours=1), channel="a") for n in range(20)]
    )
    ids = await world.fill("a", 3)
    assert [m.id for m in await world.drain(1)] == ids


@case("order", "one start in ten goes to the longest waiting, so that no priority starves")
async def no_starvation(world: World) -> None:
    (low,) = await world.publish("low", channel="a")
    starts = []
    for _ in range(10):
        await world.fill("a", 3, priority=9)
        starts.append((await world.claim_one()).id)
        world.clock.advance(1)
    assert low in starts
    assert low not in starts[:9]


@case("order", "the same in batches")
async def no_starvation_batch(world: World) -> None:
    await world.fill("a", 10)
    world.clock.advance(1)
    await world.fill("a", 100, priority=9)
    low = sum(m.priority == 0 for m in await world.queue.claim(50))
    assert low == 5


@case("order", "one at a time is strict order across processes, whatever happens to a message")
async def strict(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    ids = await world.publish(*range(12), channel="a")
    clients = [world.client() for _ in range(3)]
    seen: list[int] = []
    for turn in range(24):
        (message,) = await world.claim(client=clients[turn % 3])
        assert not await clients[(turn + 1) % 3].claim()
        if turn % 2:
            seen.append(message.id)
            await message.complete()
        else:
            await message.give_back()
    assert seen == ids


@case("order", "one at a time: a crash delays its message, the others keep their order")
async def strict_crash(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    ids = await world.publish(*range(4), channel="a")
    assert (await world.claim_one()).id == ids[0]
    await world.expire()
    seen = []
    for _ in range(4):
        message = await world.claim_one()
        seen.append(message.id)
        await message.complete()
        world.clock.advance(10)
    assert sorted(seen) == ids and [i for i in seen if i != ids[0]] == ids[1:]


@case("order", "given back messages of a big claim start again in their order")
async def given_back(world: World) -> None:
    ids = await world.publish(*range(30), channel="a")
    claim = await world.queue.claim(20)
    await world.queue.give_back(list(claim)[5:])
    assert [m.id for m in await world.drain(1)] == ids[5:]
