"""Numbers for operators: by queue, by channel, and by minute, which upkeep counts."""

from dataclasses import replace
from datetime import timedelta
from inspect import isawaitable
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidInput
from laneway.model import ChannelStats
from laneway.operations import NO_TIMES, WAIT_BOUNDS, Minute

HOUR = timedelta(hours=1)
_TRIES = 200


async def count(world: World, channel: str) -> tuple[int, int, int, int]:
    """waiting, scheduled, leased, dead"""
    n = await world.queue.channel(channel).stats()
    return n.waiting, n.scheduled, n.leased, n.dead


@case("stats", "follow a message through its states")
async def states(world: World) -> None:
    assert await world.queue.channel("a").stats() == ChannelStats(world.name, "a")
    await world.fill("a", 5)
    await world.fill("a", 2, delay=timedelta(hours=1))
    assert await count(world, "a") == (5, 2, 0, 0)
    messages = list(await world.queue.claim(4))
    assert await count(world, "a") == (1, 2, 4, 0)
    await messages[0].complete()
    await messages[1].fail()
    await messages[2].give_back()
    await messages[3].defer(timedelta(hours=1))
    assert await count(world, "a") == (2, 3, 0, 1)
    await world.queue.dead_letters.redrive(queue=world.name)
    assert await count(world, "a") == (3, 3, 0, 0)
    await world.drain()
    assert await count(world, "a") == (0, 3, 3, 0)


@case("stats", "cancelled and lapsed messages are not counted")
async def ended(world: World) -> None:
    ids = await world.fill("a", 4)
    later = await world.fill("a", 2, delay=timedelta(hours=1))
    await world.queue.cancel([ids[0], later[0]])
    await world.fill("a", 3, expires_in=timedelta(seconds=1))
    world.clock.advance(2)
    await world.upkeep()
    assert (await count(world, "a"))[0] == 3
    assert await world.queue.cancel(later[1:])
    await world.drain()
    assert (await count(world, "a"))[2:] == (3, 0)


@case("stats", "by queue they add up")
async def by_queue(world: World) -> None:
    await world.fill("a", 3)
    await world.fill("b", 2)
    await world.fill("b", 1, delay=timedelta(hours=1))
    message = await world.claim_one()
    await message.fail()
    await world.claim_one()
    (n,) = (n for n in await world.queue.stats() if n.queue == world.name)
    assert (n.waiting, n.scheduled, n.leased, n.dead, n.channels) == (3, 1, 1, 1, 2)


@case("stats", "the fullest channel comes first")
async def fullest(world: World) -> None:
    for name, size in (("a", 1), ("b", 5), ("c", 3)):
        await world.fill(name, size)
    found = await world.queue.channel_stats(queue=world.name)
    assert [(n.channel, n.waiting) for n in found] == [("b", 5), ("c", 3), ("a", 1)]
    assert len(await world.queue.channel_stats(queue=world.name, limit=2)) == 2


@case("stats", "the oldest is what has waited longest")
async def oldest(world: World) -> None:
    await world.publish(1, channel="a", at=world.later(-100))
    start = world.clock.now
    await world.publish(2, channel="b", at=world.later(-200))
    stats = {n.channel: n for n in await world.queue.channel_stats(queue=world.name)}
    assert stats["b"].oldest_due == start - timedelta(seconds=200)
    (n,) = (n for n in await world.queue.stats() if n.queue == world.name)
    assert n.oldest_due == start - timedelta(seconds=200)
    await world.queue.complete(await world.drain())
    assert not [n for n in await world.queue.stats() if n.queue == world.name]


@case("stats", "expired leases wait again")
async def expired(world: World) -> None:
    await world.fill("a", 3)
    await world.queue.claim(2)
    await world.expire()
    waiting, scheduled, leased, dead = await count(world, "a")
    assert (waiting + scheduled, leased, dead) == (3, 0, 0)


async def counted(world: World, ended: int, **options: Any) -> list[Minute]:
    """The minutes of this queue, once upkeep has counted so many ends of attempts: it only counts
    what no open transaction can still come before, also those of others."""
    for _ in range(_TRIES):
        await world.queue.upkeep()
        found = await world.queue.minutes(queue=world.name, **options)
        if sum(sum(minute.runs) for minute in found) >= ended:
            return found
    raise AssertionError(f"upkeep has not counted {ended} attempts: {found}")


async def to_next_hour(world: World) -> None:
    """Minutes of a case begin with an hour, so that none is cut in two."""
    now = world.clock.now
    world.clock.advance(3600 - (now.timestamp() % 3600))


@case("minutes", "count what happened, when it happened")
async def happened(world: World) -> None:
    await to_next_hour(world)
    begin = world.clock.now
    await world.fill("a", 6, kind="mail")
    world.clock.advance(60)
    first = await world.queue.claim(5)
    world.clock.advance(3)
    await world.queue.complete(first[:2])
    await first[2].fail("no")
    await first[3].defer(timedelta(seconds=1), error=ValueError("later"))
    await first[4].give_back()
    world.clock.advance(57)
    await world.queue.dead_letters.redrive(queue=world.name)
    world.clock.advance(60)
    await world.queue.complete(await world.drain())
    world.clock.advance(60)
    minutes = await counted(world, 9)
    found = {round((minute.at - begin) / timedelta(minutes=1)): minute for minute in minutes}
    assert found[0].published == 6 and found[0].completed == 0, found[0]
    one = found[1]
    assert (one.started, one.completed, one.failed, one.retried) == (5, 2, 1, 1), one
    assert (one.given_back, one.dead, one.published) == (1, 1, 0), one
    assert sum(one.waits) == sum(one.runs) == 5, one
    assert one.waits[WAIT_BOUNDS.index(60.0)] == 5, one
    assert one.runs[WAIT_BOUNDS.index(5.0)] == 5, one
    assert found[2].redriven == 1, found[2]
    assert (found[3].started, found[3].completed) == (4, 4), found[3]
    assert all(minute.exact for minute in minutes)
    assert {(minute.queue, minute.kind) for minute in minutes} == {(world.name, None)}


@case("minutes", "a message that waits inside a worker waits, and does not run")
async def inside_a_worker(world: World) -> None:
    await to_next_hour(world)
    await world.fill("a", 2)
    first, second = await world.queue.claim(2)
    world.clock.advance(20)
    database = world.queue.database
    leases = [(message.id, message.fence) for message in (first, second)]
    done = database.run(database.engine.leases.complete(leases, {second.id: 19_500}))
    if isawaitable(done):  # the sync client's database is not wrapped
        await done
    world.clock.advance(60)
    minutes = await counted(world, 2)
    waits = [sum(minute.waits[n] for minute in minutes) for n in range(len(WAIT_BOUNDS))]
    runs = [sum(minute.runs[n] for minute in minutes) for n in range(len(WAIT_BOUNDS))]
    assert (waits[0], waits[WAIT_BOUNDS.index(60.0)]) == (1, 1), minutes
    assert (runs[WAIT_BOUNDS.index(60.0)], runs[WAIT_BOUNDS.index(0.5)]) == (1, 1), minutes
    untimed = [replace(minute, waits=NO_TIMES, runs=NO_TIMES) for minute in minutes]
    assert await world.queue.minutes(queue=world.name, times=False) == untimed


@case("minutes", "are added up by step, or kept apart by queue and kind")
async def added_up(world: World) -> None:
    await to_next_hour(world)
    begin = world.clock.now
    for kind in ("a", "b", "a"):
        await world.fill("c", 2, kind=kind)
        world.clock.advance(60)
    await world.queue.complete(await world.drain())
    world.clock.advance(60)
    minutes = await counted(world, 6)
    assert sum(minute.published for minute in minutes) == 6
    hours = await world.queue.minutes(queue=world.name, step=HOUR, since=begin)
    assert [(hour.at, hour.published, hour.completed) for hour in hours] == [(begin, 6, 6)]
    apart = await world.queue.minutes(queue=world.name, step=HOUR, since=begin, by="kind")
    assert [(one.queue, one.kind, one.published) for one in apart] == [
        (world.name, "a", 4),
        (world.name, "b", 2),
    ]
    one = await world.queue.minutes(queue=world.name, kind="b", step=HOUR, since=begin)
    assert [(b.kind, b.published, b.completed) for b in one] == [("b", 2, 2)]
    queues = await world.queue.minutes(step=HOUR, since=begin, by="queue")
    mine = [one for one in queues if one.queue == world.name]
    assert [(m.kind, m.published) for m in mine] == [(None, 6)]
    past = await world.queue.minutes(queue=world.name, since=begin - 2 * HOUR, until=begin)
    assert not [one for one in past if one.published]


@case("minutes", "refuse what cannot be meant")
async def refused(world: World) -> None:
    now = world.clock.now
    for wrong in (
        {"step": timedelta(seconds=90)},
        {"step": timedelta(seconds=1)},
        {"since": now, "until": now - HOUR},
        {"since": now - timedelta(days=3650)},
        {"by": "channel"},
        {"times": "no"},
    ):
        with raises(InvalidInput):
            await world.queue.minutes(**wrong)
