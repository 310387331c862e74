"""Dead letters: list, redrive, discard."""

from datetime import timedelta

from penstock.conformance.raising import raises
from penstock.conformance.registry import case
from penstock.conformance.world import World
from penstock.errors import InvalidOption
from penstock.model import NewMessage


async def six(world: World) -> None:
    """Six dead letters in two channels, of two kinds, for two reasons, a second apart."""
    for n in range(6):
        await world.queue.publish(n, channel=f"c{n % 2}", kind=f"k{n % 3}", headers={"n": n})
        await (await world.claim_one()).fail(f"r{n // 3}")
        world.clock.advance(1)


@case("dead letter", "the list is oldest first, in pages, by every filter")
async def listed(world: World) -> None:
    start = world.clock.now
    await six(world)
    letters = world.queue.dead_letters

    async def numbers(**options: object) -> list[int]:
        found = await letters.list(queue=world.name, **options)  # type: ignore[arg-type]
        return [int(letter.payload) for letter in found]

    assert await numbers() == [0, 1, 2, 3, 4, 5]
    assert await numbers(channel="c1") == [1, 3, 5]
    assert await numbers(kind="k0") == [0, 3]
    assert await numbers(reason="r1") == [3, 4, 5]
    assert await numbers(since=start + timedelta(seconds=2)) == [2, 3, 4, 5]
    assert await numbers(until=start + timedelta(seconds=2)) == [0, 1]
    page = await letters.list(queue=world.name, limit=4)
    rest = await letters.list(queue=world.name, limit=4, after=page[-1])
    assert [int(x.payload) for x in [*page, *rest]] == [0, 1, 2, 3, 4, 5]


@case("dead letter", "redrive by id: waits again with a new budget and its first publish time")
async def redrive(world: World) -> None:
    await world.publish(1, max_attempts=2, channel="a", priority=3, headers={"h": 1})
    first = await world.claim_one()
    await first.defer(error="one")
    message = await world.claim_one()
    await message.fail()
    world.clock.advance(3600)
    assert await world.queue.dead_letters.redrive([message.id, 2**60], max_attempts=5) == 1
    again = await world.claim_one()
    assert (again.id, again.max_attempts, again.attempt) == (message.id, 5, 3)
    assert again.first_published_at == message.first_published_at
    assert again.published_at == again.due == world.clock.now
    assert (again.channel, again.priority, again.headers) == ("a", 3, {"h": 1})
    assert again.fence > message.fence
    assert not await world.queue.dead_letters.list(queue=world.name)


@case("dead letter", "the new budget is a whole one")
async def new_budget(world: World) -> None:
    await world.publish(1, max_attempts=2)
    message = await world.claim_one()
    await message.defer(error="one")
    assert not await (await world.claim_one()).defer(error="two")
    await world.queue.dead_letters.redrive([message.id])
    assert await (await world.claim_one()).defer(error="one")
    assert not await (await world.claim_one()).defer(error="two")


@case("dead letter", "redrive by filter, and later")
async def by_filter(world: World) -> None:
    await six(world)
    letters = world.queue.dead_letters
    assert await letters.redrive(queue=world.name, reason="r0") == 3
    assert await letters.redrive(queue=world.name, kind="k2", delay=timedelta(hours=1)) == 1
    assert sorted(m.json() for m in await world.drain()) == [0, 1, 2]
    world.clock.advance(3600)
    assert [m.json() for m in await world.drain()] == [5]
    assert len(await letters.list(queue=world.name)) == 2


@case("dead letter", "redrive is done once")
async def once(world: World) -> None:
    await six(world)
    assert await world.queue.dead_letters.redrive(queue=world.name) == 6
    assert await world.queue.dead_letters.redrive(queue=world.name) == 0
    assert len(await world.drain()) == 6


@case("dead letter", "discard by id and by filter ends them for good")
async def discard(world: World) -> None:
    await six(world)
    letters = world.queue.dead_letters
    (first, *_) = await letters.list(queue=world.name)
    assert await letters.discard([first.id]) == 1
    assert await letters.discard([first.id]) == 0
    assert await letters.discard(queue=world.name, channel="c1") == 3
    left = await letters.list(queue=world.name)
    assert [int(x.payload) for x in left] == [2, 4]
    history = await world.queue.history(first.id)
    assert [(e.outcome, e.terminal) for e in history] == [("failed", False), ("discarded", True)]


@case("dead letter", "nobody empties everything by leaving words out")
async def words(world: World) -> None:
    letters = world.queue.dead_letters
    for call in (letters.redrive, letters.discard):
        with raises(InvalidOption):
            await call()
        with raises(InvalidOption):
            await call([1], queue="q")


@case("dead letter", "a redriven message obeys its channel's limits")
async def limits(world: World) -> None:
    await world.queue.publish_many([NewMessage(n, channel="a") for n in range(4)])
    await world.queue.fail(await world.queue.claim(4))
    await world.queue.channel("a").limit(concurrency=1)
    await world.queue.dead_letters.redrive(queue=world.name)
    assert len(await world.queue.claim(10)) == 1
