"""claim: leases, fences, what an empty answer says; and the order inside a channel: priority, due
time, publish order."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.model import ClaimStatus, NewMessage


@case("claim", "takes no more than asked for, and each message once")
async def limit(world: World) -> None:
    ids = await world.fill("a", 25)
    sizes, seen = [], []
    while claim := await world.queue.claim(10):
        assert claim.status is ClaimStatus.GOT
        sizes.append(len(claim))
        seen += [m.id for m in claim]
    assert (sizes, seen) == ([10, 10, 5], ids)


@case("claim", "a lease has the length asked for, else the client's")
async def lease_length(world: World) -> None:
    await world.fill("a", 2)
    first = await world.claim_one(lease=timedelta(minutes=7))
    second = await world.claim_one()
    assert (first.claimed_at, first.until) == (world.clock.now, world.later(7 * 60))
    assert second.until == world.later(30)


@case("claim", "over several queues at once")
async def several_queues(world: World) -> None:
    names = [f"{world.name} {n}" for n in range(3)]
    for name in names:
        await world.queue.publish(1, queue=name)
    assert sorted(m.queue for m in await world.queue.claim(10, queues=names)) == names
    assert not await world.queue.claim(10, queues=[*names, world.name])


@case("claim", "the fence rises at every claim of a message, also after a redrive")
async def fences(world: World) -> None:
    await world.publish(1)
    fences = []
    for _ in range(3):
        message = await world.claim_one()
        fences.append(message.fence)
        await message.give_back()
    message = await world.claim_one()
    fences.append(message.fence)
    await message.fail()
    await world.queue.dead_letters.redrive([message.id])
    fences.append((await world.claim_one()).fence)
    assert fences == sorted(set(fences))


@case("claim", "nothing there: empty, and nothing is known to come")
async def empty(world: World) -> None:
    claim = await world.queue.claim(10)
    assert (len(claim), claim.status, claim.look_again) == (0, ClaimStatus.EMPTY, None)


@case("claim", "nothing due: empty, and when the next one is")
async def nothing_due(world: World) -> None:
    for seconds in (50, 20, 80):
        await world.queue.publish(1, delay=timedelta(seconds=seconds), channel=str(seconds))
    claim = await world.queue.claim()
    assert (claim.status, claim.look_again) == (ClaimStatus.EMPTY, timedelta(seconds=20))


@case("claim", "everything leased: empty, not blocked")
async def all_leased(world: World) -> None:
    await world.fill("a", 3)
    await world.queue.claim(3)
    assert (await world.queue.claim()).status is ClaimStatus.EMPTY


@case("claim", "full channels: blocked")
async def blocked(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await world.fill("a", 2)
    await world.claim_one()
    claim = await world.queue.claim()
    assert (len(claim), claim.status, claim.look_again) == (0, ClaimStatus.BLOCKED, None)


@case("claim", "a rate that is used up: blocked, and until when")
async def blocked_by_rate(world: World) -> None:
    await world.queue.channel("a").limit(rate=0.1, burst=1)
    await world.fill("a", 2)
    await world.claim_one()
    claim = await world.queue.claim()
    assert (claim.status, claim.look_again) == (ClaimStatus.BLOCKED, timedelta(seconds=10))
    world.clock.advance(10)
    await world.claim_one()


@case("claim", "paused channels: blocked")
async def blocked_by_pause(world: World) -> None:
    await world.fill("a", 1)
    await world.queue.channel("a").pause()
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED


@case("claim", "a blocked channel hides nobody else's work")
async def blocked_beside_free(world: World) -> None:
    await world.queue.channel("a").pause()
    await world.fill("a", 50)
    await world.fill("b", 1)
    assert [m.channel for m in await world.claim(10)] == ["b"]
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED


@case("claim", "many at once get each message exactly once")
async def together(world: World) -> None:
    ids = await world.fill("a", 60) + await world.fill("b", 60)
    clients = [world.client() for _ in range(4)]

    async def take(number: int) -> list[int]:
        found: list[int] = []
        while claim := await clients[number].claim(7):
            found += [m.id for m in claim]
        return found

    parts = await asyncio.gather(*map(take, range(4)))
    found = [id for part in parts for id in part] + [m.id for m in await world.drain()]
    assert sorted(found) == sorted(ids)


@case("claim", "calls of one client at once share what is there, each up to its limit")
async def shared(world: World) -> None:
    await world.fill("a", 10)
    claims = await asyncio.gather(*(world.queue.claim(3) for _ in range(4)))
    assert all(len(claim) <= 3 for claim in claims)
    ids = [m.id for claim in claims for m in claim] + [m.id for m in await world.drain()]
    assert len(ids) == len(set(ids)) == 10
    for claim in claims:
        assert bool(claim) == (claim.status is ClaimStatus.GOT)


@case("claim", "a client that looked before sees what others publish later")
async def sees_later(world: World) -> None:
    other = world.client()
    for number in range(5):
        assert not await world.queue.claim()
        await other.publish(number, channel=str(number % 2))
        assert (await world.claim_one()).json() == number
        world.clock.advance(1)


@case("claim", "old news of channels that wait for their turn hide nobody's work")
async def old_news(world: World) -> None:
    for _ in range(6):
        await world.queue.publish_many([NewMessage(1, channel=f"c{n % 60}") for n in range(600)])
        world.clock.advance(0.001)
    for limit in (*[100] * 10, *[1] * 5):
        world.clock.advance(0.001)
        assert len(await world.claim(limit)) == limit


# Order inside a channel.


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
