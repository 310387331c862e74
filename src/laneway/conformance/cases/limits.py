"""Limits of a channel: concurrency, rate and backlog; changing only one of them."""

import asyncio
import re
from hashlib import sha256
from itertools import count
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, InvalidOption
from laneway.model import ClaimStatus, NewMessage, Policy


@case("limit", "changes only what it names")
async def named_only(world: World) -> None:
    channel = world.queue.channel("a")
    assert await channel.limit(concurrency=2, backlog=7) == Policy(2, None, None, 7)
    assert await channel.limit(rate=2.5) == Policy(2, 2.5, 3, 7)
    assert await channel.limit(weight=3) == Policy(2, 2.5, 3, 7, 3.0)
    await channel.pause()
    assert await channel.limit(backlog=8) == Policy(2, 2.5, 3, 8, 3.0, paused=True)
    assert await channel.policy() == Policy(2, 2.5, 3, 8, 3.0, paused=True)


@case("limit", "None removes the limit that it names")
async def removed(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(concurrency=2, rate=5, burst=9, backlog=7)
    assert await channel.limit(concurrency=None) == Policy(None, 5.0, 9, 7)
    assert await channel.limit(rate=None) == Policy(None, None, None, 7)
    assert await channel.limit(backlog=None) == Policy()
    assert await channel.policy() == Policy()


@case("limit", "a new rate has a burst of its own, and a burst goes with the rate that is set")
async def bursts(world: World) -> None:
    channel = world.queue.channel("a")
    assert await channel.limit(rate=5, burst=50) == Policy(None, 5.0, 50)
    assert await channel.limit(rate=7) == Policy(None, 7.0, 7)
    assert await channel.limit(burst=20) == Policy(None, 7.0, 20)
    assert await channel.limit(burst=None) == Policy(None, 7.0, 7)
    for wrong in ({"burst": 2**62}, {"rate": None, "burst": 3}, {}):
        with raises(InvalidOption):
            await channel.limit(**wrong)
    assert await channel.policy() == Policy(None, 7.0, 7)
    with raises(InvalidOption):
        await world.queue.channel("b").limit(burst=3, backlog=5)
    assert await world.queue.channel("b").policy() == Policy()


@case("limit", "what operators change at the same time all holds")
async def at_once(world: World) -> None:
    changes: list[dict[str, Any]] = [
        {"concurrency": 3},
        {"rate": 11, "burst": 2},
        {"backlog": 5000},
        {"weight": 4},
    ]
    clients = [world.client() for _ in changes]
    for number in range(10):
        channels = [client.channel(f"c{number}") for client in clients]
        await asyncio.gather(
            *(channel.limit(**change) for channel, change in zip(channels, changes, strict=True))
        )
        assert await channels[0].policy() == Policy(3, 11.0, 2, 5000, 4.0)


@case("limit", "holds from the next claim on, also for leases that began without it")
async def holds_at_once(world: World) -> None:
    channel = world.queue.channel("a")
    await world.fill("a", 10)
    held = list(await world.queue.claim(3))
    await channel.limit(backlog=100)
    await channel.limit(concurrency=3)
    assert (await world.claim(10)).status is ClaimStatus.BLOCKED
    await held[0].complete()
    assert len(await world.claim(10)) == 1
    await channel.limit(concurrency=None)
    assert len(await world.claim(10)) == 6


@case("concurrency", "no more leases than the limit, whatever is asked for and by whom")
async def concurrency(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=3)
    await world.fill("a", 10)
    held = list(await world.queue.claim(2)) + list(await world.client().claim(10))
    assert len(held) == 3
    for _ in range(3):
        assert (await world.client().claim(10)).status is ClaimStatus.BLOCKED
    await held[0].complete()
    assert len(await world.queue.claim(10)) == 1


@case("concurrency", "every way to end a lease frees its slot")
async def frees(world: World) -> None:
    await world.queue.channel("a").limit(concurrency=1)
    await world.fill("a", 8)
    for verb in ("complete", "defer", "fail", "give_back"):
        message = await world.claim_one()
        assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
        await getattr(message, verb)()
    await world.claim_one()
    await world.expire()
    await world.claim_one()


@case("concurrency", "a lower limit holds at once and is met as leases end")
async def lowered(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(concurrency=4)
    await world.fill("a", 10)
    held = list(await world.queue.claim(10))
    await channel.limit(concurrency=2)
    for message in held[:2]:
        await message.complete()
        assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await held[2].complete()
    assert len(await world.queue.claim(10)) == 1


@case("concurrency", "a higher limit holds at once")
async def raised(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(concurrency=1)
    await world.fill("a", 10)
    assert len(await world.queue.claim(10)) == 1
    await channel.limit(concurrency=4)
    assert len(await world.queue.claim(10)) == 3
    await channel.unlimited()
    assert len(await world.queue.claim(10)) == 6


@case("concurrency", "leases from before the limit count")
async def from_before(world: World) -> None:
    await world.fill("a", 10)
    held = list(await world.queue.claim(3))
    await world.queue.channel("a").limit(concurrency=3)
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await world.queue.complete(held[:2])
    assert len(await world.queue.claim(10)) == 2


@case("concurrency", "limits taken away and set again still count what is held")
async def set_again(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(concurrency=2)
    await world.fill("a", 10)
    first = list(await world.queue.claim(10))
    await channel.unlimited()
    second = list(await world.queue.claim(2))
    await channel.limit(concurrency=4)
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await world.queue.complete(first + second)
    assert len(await world.queue.claim(10)) == 4


@case("concurrency", "each channel has its own")
async def own(world: World) -> None:
    for name in "abc":
        await world.queue.channel(name).limit(concurrency=2)
        await world.fill(name, 5)
    found = [m.channel for m in await world.queue.claim(100)]
    assert sorted(found) == sorted("aabbcc")


@case("concurrency", "no limit is too large")
async def large(world: World) -> None:
    most = 2**63 - 1
    await world.queue.channel("a").limit(concurrency=most, weight=1000)
    for _ in range(3):
        await world.fill("a", 2)
        claim = await world.claim(2)
        assert len(claim) == 2
        await world.queue.complete(claim)


@case("concurrency", "channels that may start one each fill a batch")
async def one_each(world: World) -> None:
    await fills(world, Policy(concurrency=1))


@case("rate", "channels that may start one each fill a batch")
async def one_each_second(world: World) -> None:
    await fills(world, Policy(rate=1, burst=1))


async def fills(world: World, policy: Policy) -> None:
    """More wait in each than it may start: what it has is not what it can give."""
    names = [f"c{number}" for number in range(60)]
    await world.queue.set_policies(dict.fromkeys(names, policy))
    for name in names:
        await world.fill(name, 10)
    for _ in range(4):
        claim = await world.claim(50)
        assert len({message.channel for message in claim}) == 50 == len(claim)
        await world.queue.complete(claim)
        world.clock.advance(2)


@case("rate", "the burst starts at once, then the rate")
async def rate(world: World) -> None:
    await world.queue.channel("a").limit(rate=2, burst=3)
    await world.fill("a", 20)
    starts = []
    for _ in range(8):
        starts.append(len(await world.queue.claim(10)))
        world.clock.advance(0.5)
    assert starts == [3, 1, 1, 1, 1, 1, 1, 1]


@case("rate", "in any window at most burst + window x rate, however long it was idle")
async def idle(world: World) -> None:
    await world.queue.channel("a").limit(rate=1, burst=2)
    await world.fill("a", 20)
    assert len(await world.queue.claim(10)) == 2
    world.clock.advance(3600)
    assert len(await world.queue.claim(10)) == 2
    world.clock.advance(0.9)
    assert not await world.queue.claim(10)
    world.clock.advance(0.1)
    assert len(await world.queue.claim(10)) == 1


@case("rate", "redeliveries count like any other start")
async def redeliveries(world: World) -> None:
    await world.queue.channel("a").limit(rate=1, burst=1)
    await world.publish(1, channel="a")
    message = await world.claim_one()
    await message.give_back()
    claim = await world.queue.claim()
    assert claim.status is ClaimStatus.BLOCKED and claim.look_again
    world.clock.advance(claim.look_again.total_seconds())
    await world.claim_one()


@case("rate", "a steady rate over many odd steps never creeps over")
async def steady(world: World) -> None:
    await world.queue.channel("a").limit(rate=3, burst=1)
    await world.fill("a", 100)
    started = 0
    for _ in range(60):
        started += len(await world.queue.claim(10))
        world.clock.advance(0.1)
    assert 15 <= started <= 19


@case("rate", "a new rate holds at once")
async def changed(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(rate=0.001, burst=1)
    await world.fill("a", 5)
    await world.claim_one()
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    await channel.unlimited()
    assert len(await world.queue.claim(10)) == 4


@case("rate", "a faster rate, or a smaller burst, holds at once")
async def changed_again(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(rate=0.001, burst=100)
    await world.fill("a", 150)
    assert len(await world.queue.claim(150)) == 100
    await channel.limit(rate=2, burst=4)
    assert (await world.queue.claim()).status is ClaimStatus.BLOCKED
    world.clock.advance(1)
    assert len(await world.queue.claim(10)) == 2
    world.clock.advance(60)
    assert len(await world.queue.claim(10)) == 4


@case("rate", "with concurrency both hold")
async def both(world: World) -> None:
    await world.queue.channel("a").limit(rate=1, burst=5, concurrency=2)
    await world.fill("a", 20)
    held = await world.queue.claim(10)
    assert len(held) == 2
    await world.queue.complete(held)
    held = await world.queue.claim(10)
    assert len(held) == 2
    await world.queue.complete(held)
    assert len(await world.queue.claim(10)) == 1


@case("backlog", "publishing beyond it is refused, the rest of the call is not")
async def backlog(world: World) -> None:
    await world.queue.channel("a").limit(backlog=3)
    await world.fill("a", 2)
    with raises(BacklogFull) as caught:
        await world.queue.publish_many(
            [NewMessage(1, channel="a"), NewMessage(2, channel="a"), NewMessage(3, channel="b")]
        )
    assert [r.status for r in caught.error.results] == ["published", "full", "published"]
    assert [r.refused for r in caught.error.results] == [False, True, False]
    assert len(await world.drain()) == 4


@case("backlog", "holds whatever the channel is called")
async def any_name(world: World) -> None:
    """Also where the id, as text, begins with a character that Python takes for none."""
    broken = re.compile(rb"[a-z]\xed[\xa0-\xbf][\x80-\xbf]")
    names = (f"c{number}" for number in count())
    name = next(name for name in names if broken.match(channel_id(world.name, name)))
    await world.queue.channel(name).limit(backlog=1)
    assert len(await world.fill(name, 1)) == 1


def channel_id(queue: str, channel: str) -> bytes:
    """As databases with computed ids have it."""
    return sha256(f"{len(queue.encode())}:{queue}{channel}".encode()).digest()[:16]


@case("backlog", "what is leased counts until it ends")
async def backlog_leased(world: World) -> None:
    await world.queue.channel("a").limit(backlog=1)
    await world.publish(1, channel="a")
    message = await world.claim_one()
    with raises(BacklogFull):
        await world.queue.publish(2, channel="a")
    await message.complete()
    await world.publish(3, channel="a")


@case("backlog", "none at all, and none again")
async def backlog_none(world: World) -> None:
    channel = world.queue.channel("a")
    await channel.limit(backlog=0)
    with raises(BacklogFull):
        await world.queue.publish(1, channel="a")
    await channel.unlimited()
    await world.publish(1, channel="a")
