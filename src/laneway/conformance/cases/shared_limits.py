"""Limits that messages of any channels and queues share."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidName, InvalidOption
from laneway.model import ClaimStatus, NewMessage
from laneway.shared_limits import SharedLimit


def _name() -> str:
    """Limits hold for the whole schema, which other cases use too."""
    return f"limit-{uuid4().hex[:8]}"


def _payloads(messages: object) -> list[int]:
    return [int(m.payload) for m in messages]  # type: ignore[attr-defined]


@case("shared limits", "set changes only what it names, and what cannot be is refused")
async def named_only(world: World) -> None:
    name = _name()
    limit = world.queue.limits[name]
    assert await limit.get() == SharedLimit(name) and not (await limit.get()).limited
    assert await limit.set(concurrency=2) == SharedLimit(name, 2)
    assert await limit.set(rate=2.5) == SharedLimit(name, 2, 2.5, 3)
    assert await limit.set(burst=7) == SharedLimit(name, 2, 2.5, 7)
    assert await limit.set(concurrency=None) == SharedLimit(name, None, 2.5, 7)
    assert await limit.set(rate=None) == SharedLimit(name)
    for wrong in ({"burst": 3}, {}, {"concurrency": 0}, {"rate": -1}):
        with raises(InvalidOption):
            await limit.set(**wrong)  # type: ignore[arg-type]
    with raises(InvalidName):
        world.queue.limits["a,b"]
    with raises(InvalidName):
        await world.queue.publish(1, limits=[""])
    for names in ("abc", ["a", "b", "c", "d", "e"], 3):
        with raises(InvalidOption):
            await world.queue.publish(1, limits=names)  # type: ignore[arg-type]
    assert await limit.remove() and not await limit.remove()


@case("shared limits", "no more run at once than it allows, of all channels together")
async def concurrency(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=3)
    for channel in "abcd":
        await world.fill(channel, 3, limits=[name])
    await world.publish(99, channel="a")
    held = await world.drain(10)
    assert len(held) == 4 and 99 in _payloads(held)
    assert {m.channel for m in held if int(m.payload) != 99} <= set("abcd")
    blocked = await world.claim(10)
    assert blocked.status is ClaimStatus.BLOCKED and blocked.look_again is not None
    found = await world.queue.limits[name].get()
    assert (found.running, found.waiting) == (3, 9)
    started: list[int] = []
    while held:
        for message in held:
            await message.complete()
        held = await world.drain(10)
        assert len(held) <= 3
        started += [m.id for m in held]
    assert len(started) == len(set(started)) == 9
    assert (await world.queue.limits[name].get()).running == 0


@case("shared limits", "what waits keeps its order, and others of its channel pass it")
async def order(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    await world.fill("a", 4, limits=[name])
    await world.publish(50, 51, channel="a")
    first = await world.drain(10)
    assert sorted(_payloads(first)) == [0, 50, 51]
    await world.publish(77, channel="a", limits=[name])
    (running,) = [m for m in first if int(m.payload) == 0]
    seen = []
    for _ in range(4):
        await running.complete()
        (running,) = await world.drain(10)
        seen.append(int(running.payload))
    assert seen == [1, 2, 3, 77]


@case(
    "shared limits",
    "a message starts if all of its limits let it, and holds none that it waits for",
)
async def several(world: World) -> None:
    one, two = _name(), _name()
    await world.queue.limits[one].set(concurrency=2)
    await world.queue.limits[two].set(concurrency=1)
    await world.publish(1, 2, channel="a", limits=[two, one])
    await world.publish(3, channel="a", limits=[one])
    held = await world.drain(10)
    assert sorted(_payloads(held)) == [1, 3]
    await held[_payloads(held).index(3)].complete()
    assert not await world.drain(10)
    await held[_payloads(held).index(1)].complete()
    assert _payloads(await world.drain(10)) == [2]


@case("shared limits", "no more start than the rate allows")
async def rate(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(rate=2, burst=3)
    for channel in "ab":
        await world.fill(channel, 5, limits=[name])
    starts = []
    for _ in range(30):
        held = await world.drain(10)
        starts.append(len(held))
        for message in held:
            await message.complete()
        world.clock.advance(0.1)
    assert starts[0] == 3 and sum(starts) in (8, 9), starts
    blocked = await world.claim(10)
    assert blocked.look_again is not None and blocked.look_again <= timedelta(seconds=0.5)
    for first in range(30):
        for last in range(first, 30):
            assert sum(starts[first : last + 1]) <= 3 + 2 * 0.1 * (last - first) + 1e-9


@case("shared limits", "a lower limit holds at once, and a higher one lets more start")
async def changed(world: World) -> None:
    name = _name()
    limit = world.queue.limits[name]
    await limit.set(concurrency=4)
    await world.fill("a", 12, limits=[name])
    held = await world.drain(10)
    assert len(held) == 4
    await limit.set(concurrency=2)
    for message in held[:2]:
        await message.complete()
    assert not await world.drain(10)
    await held[2].complete()
    assert len(await world.drain(10)) == 1
    await limit.set(concurrency=6)
    assert len(await world.drain(10)) == 4
    await limit.remove()
    assert len(await world.drain(10)) == 3


@case("shared limits", "leases that ran out count until they are taken back")
async def expired(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=2)
    await world.fill("a", 3, limits=[name])
    assert len(await world.drain(10)) == 2
    world.clock.advance(31)
    assert not await world.drain(10)
    await world.upkeep()
    assert _payloads(await world.drain(10))[:1] == [2]
    assert (await world.queue.limits[name].get()).running <= 2


@case("shared limits", "what is put back or fails leaves its slot to others")
async def put_back(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    await world.fill("a", 4, limits=[name])
    (first,) = await world.drain(10)
    await first.defer(delay=timedelta(hours=2))
    (second,) = await world.drain(10)
    await second.fail("no")
    (third,) = await world.drain(10)
    await third.give_back()
    (again,) = await world.drain(10)
    assert _payloads([first, second, third]) == [0, 1, 2] and int(again.payload) in (2, 3)
    await again.complete()
    (last,) = await world.drain(10)
    assert {int(again.payload), int(last.payload)} == {2, 3}
    await last.complete()
    await world.queue.dead_letters.redrive([second.id])
    assert len(await world.drain(10)) == 1


@case("shared limits", "channels share a limit evenly, and by weight")
async def fair(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=4)
    await world.queue.channel("heavy").limit(weight=3)
    for channel in ("a", "b", "heavy"):
        await world.fill(channel, 60, limits=[name])
    await world.drain(100)
    served: Counter[str] = Counter()
    held = [*(await world.drain(100))]
    # What the first claim started, before anything waited, is ended first.
    await _complete_all(world, name)
    while sum(served.values()) < 50:
        for message in held:
            await message.complete()
        held = await world.drain(100)
        served.update(message.channel for message in held)
    assert abs(served["heavy"] - 30) <= 4 and abs(served["a"] - served["b"]) <= 2


async def _idle_claims(world: World, limit: str, count: int, **options: Any) -> int:
    """How many claims of ten came back empty though a slot was free and something waited, until
    that many messages have ended."""
    idle, held, left = 0, list[AsyncMessage](), count
    for _ in range(10 * count):
        for message in held:
            await message.complete()
        left -= len(held)
        if not left:
            return idle
        held = [*(await world.queue.claim(10, **options))]
        idle += not held
        world.clock.advance(0.02)
    raise AssertionError(f"{left} never start: {await world.queue.limits[limit].get()}")


@case("shared limits", "no claim comes back empty while slots are free and messages wait")
async def no_idle_slots(world: World) -> None:
    for channels in (1, 30):
        name = _name()
        await world.queue.limits[name].set(concurrency=3)
        for number in range(channels):
            await world.fill(f"{channels} {number}", 60 // channels, limits=[name])
        assert await _idle_claims(world, name, 60) == 0


@case("shared limits", "no claim by kind comes back empty while slots are free and messages wait")
async def no_idle_slots_by_kind(world: World) -> None:
    world.needs("claims by kind")
    name = _name()
    await world.queue.limits[name].set(concurrency=3)
    for _ in range(5):  # the first claims by kind prepare the queue
        await world.queue.claim(10, kinds=["mail"])
    for channel in "abcdefghij":
        await world.fill(channel, 6, limits=[name], kind="mail")
        await world.fill(channel, 2, limits=[name], kind="call")
    assert await _idle_claims(world, name, 60, kinds=["mail"]) == 0
    assert await _idle_claims(world, name, 20) == 0


@case("shared limits", "a set of several limits and one of one leave no slot idle together")
async def no_idle_slots_of_sets(world: World) -> None:
    one, two = _name(), _name()
    await world.queue.limits[one].set(concurrency=3)
    await world.queue.limits[two].set(concurrency=2)
    for number in range(10):
        await world.fill(f"{number}", 3, limits=[one])
        await world.fill(f"{number}", 3, limits=[one, two])
    assert await _idle_claims(world, one, 60) == 0


@case("shared limits", "what waits for one limit is not passed by what names it among others")
async def sets(world: World) -> None:
    one, two = _name(), _name()
    await world.queue.limits[one].set(concurrency=1)
    await world.publish(0, channel="a", limits=[one])
    (running,) = await world.drain(10)
    await world.fill("a", 3, limits=[one])
    await world.all_wait(one, 3)
    await running.complete()
    await world.publish(9, channel="b", limits=[one, two])
    await world.publish(8, channel="c", limits=[one, two])
    order = []
    for _ in range(5):
        (running,) = await world.drain(10)
        order.append(int(running.payload))
        await running.complete()
    assert order[0] == 0 and sorted(order) == [0, 1, 2, 8, 9]


@case("shared limits", "a channel that is found late has its share from when on it was due")
async def found_late(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    await world.fill("a", 30, limits=[name])
    (running,) = await world.drain(10)
    await world.fill("b", 20, limits=[name])
    served: Counter[str] = Counter()
    for _ in range(24):
        await running.complete()
        world.clock.advance(0.01)
        running = await _next(world)
        served[running.channel] += 1
    assert abs(served["a"] - served["b"]) <= 3, served


async def _next(world: World) -> AsyncMessage:
    for _ in range(60):
        if claim := await world.queue.claim(1):
            return claim[0]
    raise AssertionError("nothing starts")


async def _complete_all(world: World, name: str) -> None:
    """Lets the leases of a limit end that nobody holds in hand."""
    if (await world.queue.limits[name].get()).running:
        await world.expire()


@case("shared limits", "a channel that is paused holds up no other")
async def paused(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    await world.publish(0, channel="c", limits=[name])
    (first,) = await world.drain(10)
    await world.fill("a", 2, limits=[name])
    await world.fill("b", 2, limits=[name])
    assert not await world.drain(10)
    await world.queue.channel("a").pause()
    await first.complete()
    (second,) = await world.drain(10)
    assert second.channel == "b"
    await world.queue.channel("a").resume()
    await second.complete()
    assert len(await world.drain(10)) == 1


@case("shared limits", "a channel's own limits hold beside it")
async def own_limits(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=3)
    await world.queue.channel("a").limit(concurrency=1)
    await world.fill("a", 4, limits=[name])
    await world.fill("b", 4, limits=[name])
    held = await world.drain(10)
    for _ in range(5):
        assert sum(m.channel == "a" for m in held) <= 1
        assert len(held) <= 3
        await held.pop(0).complete()
        held += await world.drain(10)
        world.clock.advance(1.5)


@case("shared limits", "a rest holds back everything behind it, and what else waits goes on")
async def rest(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=5)
    await world.publish(1, channel="a", limits=[name])
    await world.publish(2, channel="a")
    await world.queue.limits[name].rest(60)
    await world.queue.limits[name].rest(30)
    assert _payloads(await world.drain(10)) == [2]
    assert (await world.queue.limits[name].get()).resting_until is not None
    world.clock.advance(59)
    assert not await world.drain(10)
    world.clock.advance(2)
    assert _payloads(await world.drain(10)) == [1]


@case("shared limits", "a cancelled message waits no more")
async def cancelled(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    ids = await world.fill("a", 3, limits=[name])
    (first,) = await world.drain(10)
    results = await world.queue.cancel(ids[1:2])
    assert [result.status for result in results] == ["cancelled"]
    assert (await world.queue.limits[name].get()).waiting == 1
    await first.complete()
    assert _payloads(await world.drain(10)) == [2]


@case("shared limits", "what is replaced while it waits has its new time and its new limits")
async def replaced(world: World) -> None:
    one, two = _name(), _name()
    for name in (one, two):
        await world.queue.limits[name].set(concurrency=1)
    await world.publish(0, channel="a", limits=[one])
    await world.publish(0, channel="b", limits=[two])
    held = {message.channel: message for message in await world.drain(10)}
    for key in ("later", "other"):
        await world.publish(1, channel="c", key=key, limits=[one])
    await world.all_wait(one, 2)
    queue = world.queue
    await queue.publish(
        2,
        channel="c",
        key="later",
        limits=[one],
        delay=60,
        on_duplicate="debounce",
        debounce_for=600,
    )
    await queue.publish(3, channel="c", key="other", limits=[two], on_duplicate="replace")
    await held["a"].complete()
    assert not await world.drain(10)
    await held["b"].complete()
    (message,) = await world.drain(10)
    assert (int(message.payload), list(message.limits)) == (3, [two])
    await message.complete()
    assert not await world.drain(10)
    world.clock.advance(61)
    assert _payloads(await world.drain(10)) == [2]


@case("shared limits", "a limit that nobody has set holds nothing back, and is listed")
async def unset(world: World) -> None:
    name = _name()
    await world.fill("a", 5, limits=[name])
    assert len(await world.drain(10)) == 5
    (found,) = [one for one in await world.queue.limits.list() if one.name == name]
    assert (found.limited, found.running) == (False, 5)
    (doctor,) = [f for f in await world.queue.diagnose() if f.check == "shared limits"]
    assert doctor.level == "warn" and doctor.fix
    await world.queue.limits[name].set(concurrency=5)
    await world.publish(9, channel="a", limits=[name])
    assert not await world.drain(10)


@case("shared limits", "channels, topics and tasks that wait for a limit say so")
async def reasons(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    topic = world.queue.topic(name)
    await topic.subscribe()
    await topic.publish(1, channel="a", limits=[name])
    await topic.publish(2, channel="b", limits=[name])
    assert len(await world.drain(10)) == 1
    page = await world.queue.channels(queue=world.queue.name)
    reasons = {info.waits_for for info in page if info.waits_for}
    assert reasons == {f"limit {name}: 1 of 1 running"}
    await topic.unsubscribe()


@case("shared limits", "messages of schedules start behind the limits that these name")
async def scheduled(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    for number in (1, 2):
        await world.queue.schedule(f"s{number}", number, every=3600, limits=[name])
    world.clock.advance(3600)
    assert (await world.queue.fire_schedules(queues=[world.queue.name])).fired == 2
    (message,) = await world.drain(10)
    assert list(message.limits) == [name]
    assert (await world.queue.limits[name].get()).waiting == 1


@case("shared limits", "claims by kind leave what others wait for")
async def by_kind(world: World) -> None:
    world.needs("claims by kind")
    name = _name()
    await world.queue.limits[name].set(concurrency=1)
    await world.queue.publish_many(
        [NewMessage(n, channel="a", kind="xy"[n % 2], limits=[name]) for n in range(4)]
    )
    started = []
    for kind in ("x", "y", "y", "x"):
        claim = await world.queue.claim(10, kinds=[kind])
        for _ in range(6):
            if claim:
                break
            claim = await world.queue.claim(10, kinds=[kind])
        (message,) = claim
        started.append((message.kind, int(message.payload)))
        await message.complete()
    assert started == [("x", 0), ("y", 1), ("y", 3), ("x", 2)]


@case("shared limits", "claims at the same time start no more than it allows")
async def at_once(world: World) -> None:
    name = _name()
    await world.queue.limits[name].set(concurrency=5)
    for channel in range(10):
        await world.fill(f"c{channel}", 6, limits=[name])
    clients = [world.client() for _ in range(4)]
    done = 0
    while done < 60:
        claims = await asyncio.gather(*(client.claim(8) for client in clients))
        assert sum(map(len, claims)) <= 5
        found = await world.queue.limits[name].get()
        assert found.running == sum(map(len, claims))
        for claim in claims:
            for message in claim:
                await message.complete()
                done += 1
    assert not await world.drain()


@case("shared limits", "a queue of which nothing waits for them is empty, whatever waits elsewhere")
async def other_queue(world: World) -> None:
    name, other = _name(), f"{world.name}-other"
    await world.queue.limits[name].set(concurrency=1)
    for n in range(3):
        await world.queue.publish(n, queue=other, limits=[name])
    assert len(await world.queue.claim(10, queues=[other])) == 1
    claim = await world.queue.claim(10)
    assert (claim.status, claim.look_again) == (ClaimStatus.EMPTY, None)
    for _ in range(5):  # the first claims by kind prepare the queue
        await world.queue.claim(10, kinds=["mail"])
    claim = await world.client().claim(10, kinds=["mail"])
    assert (claim.status, claim.look_again) == (ClaimStatus.EMPTY, None)
