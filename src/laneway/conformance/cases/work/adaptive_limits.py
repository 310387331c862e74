"""Shared limits that find their own concurrency, and breakers."""

from collections.abc import Sequence
from datetime import timedelta
from inspect import isawaitable
from typing import Any
from uuid import uuid4

from laneway.client.aio.message import AsyncMessage
from laneway.client.aio.queue import AsyncQueue
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, InvalidTime
from laneway.limits import Adapt, AttemptEnd, Breaker
from laneway.shared_limits import LimitNote, SharedLimit

BREAKER = Breaker(failures=0.5, window=30, minimum=4, pause=60)


async def _limit(world: World, count: int = 60, **options: object) -> str:
    """A limit of its own, and messages that wait for it."""
    name = f"limit-{uuid4().hex[:8]}"
    await world.queue.limits[name].set(**options)  # type: ignore[arg-type]
    for channel in "ab":
        await world.fill(channel, count // 2, limits=[name])
    return name


async def _complete(messages: Sequence[AsyncMessage]) -> None:
    for message in messages:
        await message.complete()


async def _fail(messages: Sequence[AsyncMessage], error: BaseException | str = "no") -> None:
    for message in messages:
        await message.defer(timedelta(hours=3), error=error)


async def _note(
    world: World, name: str, messages: Sequence[AsyncMessage], outcome: AttemptEnd
) -> None:
    database = world.queue.database
    notes = [LimitNote(name, m.id, m.fence, outcome) for m in messages]
    noted: Any = database.run(database.engine.limits.note_limits(notes))
    if isawaitable(noted):  # the sync client's database is not wrapped
        noted = await noted
    assert noted == [True] * len(notes)


async def _throttled(world: World, name: str, messages: Sequence[AsyncMessage]) -> None:
    """As a worker does it whose handlers raise Throttled."""
    await _note(world, name, messages, AttemptEnd.THROTTLED)
    for message in messages:
        await message.give_back(timedelta(hours=3))


async def _opened(world: World, **options: object) -> str:
    """A limit whose breaker has just opened."""
    name = await _limit(world, **({"breaker": BREAKER, "concurrency": 4} | options))  # type: ignore[arg-type]
    await _fail(await world.drain(10))
    assert not await world.drain(10)
    return name


@case("adaptive limits", "adapt and breaker are set, kept and removed like any limit")
async def named_only(world: World) -> None:
    name = f"limit-{uuid4().hex[:8]}"
    limit = world.queue.limits[name]
    adapt = Adapt(min=2, max=50)
    assert await limit.set(concurrency=20, adapt=adapt) == SharedLimit(
        name, 20, adapt=adapt, adapted=20
    )
    assert (await limit.set(rate=5)).adapt == adapt
    assert (await limit.set(adapt=Adapt(2, 10))).in_force == 10
    assert (await limit.set(concurrency=1)).in_force == 2
    assert (await limit.set(breaker=BREAKER)).state == "closed"
    found = await limit.get()
    assert (found.adapt, found.breaker, found.rate) == (Adapt(2, 10), BREAKER, 5)
    assert await limit.set(adapt=None, breaker=None) == SharedLimit(name, 1, 5, 5)
    assert (await limit.set(concurrency=None, rate=None, adapt=adapt)).in_force == 2
    assert (await limit.get()).limited
    for least, most in ((0, 1), (3, 2), (1, 2**40), (True, 2), ("1", 2)):
        with raises(InvalidOption):
            Adapt(least, most)  # type: ignore[arg-type]
    for wrong in ({"failures": 0}, {"failures": 2}, {"minimum": 0}):
        with raises(InvalidOption):
            Breaker(**wrong)
    with raises(InvalidTime):
        Breaker(window=0.1)
    with raises(InvalidOption):
        await limit.set(adapt=(1, 2))  # type: ignore[arg-type]
    assert await limit.remove()


@case("adaptive limits", "it grows by one after each round of completed messages while it is full")
async def grows(world: World) -> None:
    name = await _limit(world, 60, concurrency=2, adapt=Adapt(min=1, max=4))
    seen = []
    for _ in range(8):
        held = await world.drain(10)
        seen.append(len(held))
        await _complete(held)
    assert seen == [2, 3, 4, 4, 4, 4, 4, 4], seen
    assert (await world.queue.limits[name].get()).adapted == 4


@case("adaptive limits", "it does not grow while it is not full, nor by what fails")
async def stays(world: World) -> None:
    name = await _limit(world, 0, concurrency=3, adapt=Adapt(min=1, max=9))
    for _ in range(4):
        await world.fill("a", 2, limits=[name])
        held = await world.drain(10)
        assert len(held) == 2
        await _complete(held)
    await world.fill("a", 12, limits=[name])
    for _ in range(2):
        held = await world.drain(10)
        assert len(held) == 3
        await _fail(held)
    assert len(await world.drain(10)) == 3
    assert (await world.queue.limits[name].get()).adapted == 3


@case("adaptive limits", "timeouts and Throttled halve it, once for all that ran at the time")
async def halves(world: World) -> None:
    name = await _limit(world, concurrency=16, adapt=Adapt(min=3, max=20))
    held = await world.drain(20)
    assert len(held) == 16
    await _fail(held[:3], TimeoutError("slow"))
    assert not await world.drain(20)
    assert (await world.queue.limits[name].get()).in_force == 8
    # What ran then says nothing more, neither in the same moment nor later.
    await _throttled(world, name, held[3:9])
    await _complete(held[9:10])
    assert len(await world.drain(20)) == 2
    await _fail(held[10:], TimeoutError("slow"))
    held = await world.drain(20)
    assert len(held) == 6 and (await world.queue.limits[name].get()).adapted == 8
    await _throttled(world, name, held[:2])
    assert not await world.drain(20)
    found = await world.client().limits[name].get()
    assert (found.adapted, found.running) == (4, 6)
    await world.queue.limits[name].set(concurrency=3)
    assert (await world.queue.limits[name].get()).in_force == 3


@case("adaptive limits", "it stays within its bounds, whatever happens")
async def bounds(world: World) -> None:
    name = await _limit(world, concurrency=5, adapt=Adapt(min=2, max=5))
    for expected in (5, 2, 2):
        held = await world.drain(20)
        assert len(held) == expected
        await _fail(held, TimeoutError("slow"))
    for expected in (2, 3, 4, 5, 5):
        held = await world.drain(20)
        assert len(held) == expected
        await _complete(held)
    await world.queue.limits[name].set(adapt=None)
    assert len(await world.drain(20)) == 5


@case("breakers", "one opens once enough of what ended in its window has failed")
async def opens(world: World) -> None:
    name = await _limit(world, breaker=BREAKER, concurrency=4)
    limit = world.queue.limits[name]
    held = await world.drain(10)
    await _fail(held[:3])
    held = held[3:] + await world.drain(10)
    assert len(held) == 4 and (await limit.get()).state == "closed"  # three are too few
    await _complete(held[:2])
    held = held[2:] + await world.drain(10)
    found = await limit.get()
    assert (found.state, found.ended, found.failed) == ("closed", 5, 3)
    await _fail(held[:1])
    assert not await world.drain(10)
    found = await limit.get()
    assert (found.state, found.ended, found.failed) == ("open", 6, 4)
    assert found.opened_at == world.clock.now and found.probe_at == world.later(60)
    assert found.in_force == 1 and found.resting_until is None


@case(
    "breakers", "while it is open nothing starts, and what waits keeps its order and its attempts"
)
async def waits(world: World) -> None:
    name = await _limit(world, 0, breaker=BREAKER, concurrency=4)
    await world.fill("a", 9, limits=[name])
    await _fail(await world.drain(10))
    await world.publish(77, channel="c", limits=[name])
    await world.publish(88, channel="c")
    assert [int(m.payload) for m in await world.drain(10)] == [88]
    for _ in range(5):
        world.clock.advance(11.9)
        blocked = await world.claim(10)
        assert not blocked and blocked.look_again is not None
    world.clock.advance(0.6)
    (probe,) = await world.drain(10)
    assert probe.attempt == 1 and int(probe.payload) in (4, 77)
    waits_for = {c.channel: c.waits_for for c in await world.queue.channels(queue=world.name)}
    assert waits_for["a"] == f"limit {name}: breaker lets one through at a time", waits_for
    await probe.complete()
    assert [int(m.payload) for m in await world.drain(10) if m.channel == "a"][:3] in (
        [4, 5, 6],
        [5, 6, 7],
    )


@case(
    "breakers", "single ones are let through after the pause: completed it closes, failed it opens"
)
async def probes(world: World) -> None:
    name = await _opened(world)
    limit = world.queue.limits[name]
    waits_for = {c.channel: c.waits_for for c in await world.queue.channels(queue=world.name)}
    until = world.later(60)
    assert waits_for["a"] == f"limit {name}: breaker open until {until:%H:%M:%S} UTC", waits_for
    for _ in range(2):
        world.clock.advance(60)
        assert (await limit.get()).state == "probing"
        held = await world.drain(10)
        assert len(held) == 1
        world.clock.advance(5)
        await _fail(held)
        assert not await world.drain(10)
        found = await limit.get()
        assert (found.state, found.probe_at) == ("open", world.later(60))
    world.clock.advance(60)
    (probe,) = await world.drain(10)
    await probe.give_back()  # says nothing: the next one is let through
    (probe,) = await world.drain(10)
    await probe.complete()
    assert len(await world.drain(10)) == 4
    found = await limit.get()
    assert (found.state, found.ended, found.failed) == ("closed", 0, 0)


@case("breakers", "what ran when it opened is not a probe, and does not keep one from starting")
async def stragglers(world: World) -> None:
    name = await _limit(world, breaker=BREAKER, concurrency=6)
    held = await world.drain(10)
    world.clock.advance(1)
    await _fail(held[:4])
    assert not await world.drain(10)
    old = held[4:]
    await world.queue.extend(old, timedelta(hours=1))
    world.clock.advance(60)
    (probe,) = await world.drain(10)
    await _complete(old[:1])  # of before: it neither closes it nor makes room for a second
    assert not await world.drain(10)
    await _fail(old[1:])
    assert not await world.drain(10)
    assert (await world.queue.limits[name].get()).state == "probing"
    await probe.complete()
    assert len(await world.drain(10)) == 6


@case("breakers", "one without a concurrency lets single ones through too")
async def alone(world: World) -> None:
    await _opened(world, concurrency=None)


@case("breakers", "leases that ran out are failures, also of the one that was let through")
async def expired(world: World) -> None:
    name = await _limit(world, breaker=BREAKER, concurrency=4)
    assert len(await world.drain(10)) == 4
    await world.expire()
    assert not await world.drain(10)
    limit = world.queue.limits[name]
    opened = (await limit.get()).opened_at
    assert opened == world.clock.now
    world.clock.advance(61)
    (stale,) = await world.drain(10)
    world.clock.advance(31)
    assert not await world.drain(10)
    await world.upkeep()
    await _note(world, name, [stale], AttemptEnd.COMPLETED)  # by a worker that was away
    assert not await world.drain(10)
    found = await limit.get()
    assert (found.state, found.opened_at) == ("open", opened)


@case(
    "breakers", "what ended before the window counts no more, nor what was throttled or given back"
)
async def window(world: World) -> None:
    name = await _limit(world, breaker=BREAKER, concurrency=4)
    held = await world.drain(10)
    await _fail(held[:3])
    await world.queue.extend(held[3:], timedelta(hours=1))
    held = held[3:] + await world.drain(10)
    world.clock.advance(31)
    await world.queue.extend(held, timedelta(hours=1))
    assert (await world.queue.limits[name].get()).ended == 0
    await _fail(held[:2])
    await _throttled(world, name, held[2:3])
    await held[3].give_back(timedelta(hours=3))
    held = await world.drain(10)
    assert len(held) == 4
    await _fail(held[:1])
    held = held[1:] + await world.drain(10)
    found = await world.queue.limits[name].get()
    assert (len(held), found.ended, found.failed, found.state) == (4, 3, 3, "closed")
    await _fail(held[:1])
    assert not await world.drain(10)


@case("breakers", "setting one closes it, and without it nothing is held back")
async def set_anew(world: World) -> None:
    name = await _opened(world)
    limit = world.queue.limits[name]
    await limit.set(concurrency=2)
    assert not await world.drain(10)
    await limit.set(breaker=Breaker(failures=1, minimum=4, pause=5))
    held = await world.drain(10)
    assert len(held) == 2
    await _fail(held)
    await _fail(await world.drain(10))
    assert not await world.drain(10)
    await limit.set(breaker=None)
    assert len(await world.drain(10)) == 2
    assert (await limit.get()).state is None


@case("breakers", "what is set to what it is stays open, and remembers what it has learned")
async def set_the_same(world: World) -> None:
    terms: dict[str, Any] = {"concurrency": 8, "rate": 100, "breaker": BREAKER}
    name = await _opened(world, **terms, adapt=Adapt(min=2, max=9))
    limit = world.queue.limits[name]
    before = await limit.get()
    for options in (terms, {"adapt": Adapt(min=2, max=9)}, terms | {"burst": 100}):
        await limit.set(**options)
        assert await limit.get() == before and before.state == "open"
        assert not await world.drain(10)
    name = await _limit(world, concurrency=8, adapt=Adapt(min=2, max=9))
    limit = world.queue.limits[name]
    await _fail(await world.drain(10), TimeoutError("slow"))
    assert len(await world.drain(10)) == 4
    await limit.set(concurrency=8, adapt=Adapt(min=2, max=9))
    assert (await limit.get()).adapted == 4


@case("breakers", "an outcome counts if its transaction commits, and claims do not wait for it")
async def transactions(world: World) -> None:
    name = await _limit(world, breaker=BREAKER, concurrency=8)
    held = await world.drain(10)
    async with await world.caller() as mine:
        for message in held[:4]:
            await message.fail("no", connection=mine.connection)
        await mine.rollback()
    assert not await world.drain(10)
    await _complete(held[:1])
    assert len(await world.drain(10)) == 1
    assert (await world.queue.limits[name].get()).failed == 0
    async with await world.caller() as mine:
        for message in held[1:5]:
            await message.fail("no", connection=mine.connection)
        if "open transactions" not in world._lacks:
            await held[5].complete()
            assert len(await world.drain(10)) == 1
        await mine.commit()
    assert not await world.drain(10)
    assert (await world.queue.limits[name].get()).state == "open"


@case("breakers", "another client sees the same, and reports at the same time count each once")
async def clients(world: World) -> None:
    name = await _limit(world, breaker=Breaker(failures=0.6, minimum=10, pause=60), concurrency=10)
    other: AsyncQueue = world.client()
    held = [*await world.claim(5), *await world.drain(10, other)]
    assert len(held) == 10
    await world.queue.fail(held[:5], "no")
    await other.complete(held[5:9])
    await other.fail(held[9:], "no")
    await other.fail(held[9:], "again")
    assert not await world.drain(10)
    found = await other.limits[name].get()
    assert (found.state, found.ended, found.failed) == ("open", 10, 6)
