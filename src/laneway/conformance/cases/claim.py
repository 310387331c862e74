"""claim: leases, fences, and what an empty answer says."""

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
