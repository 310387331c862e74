"""Events: what was committed is heard, by everyone who listens, once."""

import asyncio
from datetime import timedelta
from typing import Any

from laneway.client.aio.events import AsyncEvents
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, InvalidOption, LeaseLost
from laneway.event import MISSED, Event, What
from laneway.model import NewMessage

HOUR = timedelta(hours=1)
SOON = timedelta(milliseconds=300)


async def listening(world: World, **options: Any) -> AsyncEvents:
    """A reader of this case's queue that is open and stops when nothing comes any more."""
    wanted: dict[str, Any] = {"queues": [world.name], "idle": SOON, **options}
    events = world.queue.events(**wanted)
    await events.open()
    return events


async def rest_of(events: AsyncEvents) -> list[Event]:
    return [event async for event in events]


async def heard(events: AsyncEvents, count: int) -> list[Event]:
    """The next so many, however long they take."""
    found: list[Event] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            async for event in events:
                found.append(event)
                if len(found) == count:
                    break
    return found


@case("events", "tell a whole life, in the words of the history")
async def life(world: World) -> None:
    events = await listening(world)
    (id,) = await world.publish(1, channel="a", kind="k", max_attempts=2)
    await (await world.claim_one()).defer()
    await (await world.claim_one()).defer(error="bad")
    await (await world.claim_one()).give_back()
    await (await world.claim_one()).defer()
    await world.claim_one()
    await world.expire()
    world.clock.advance(2)
    await (await world.claim_one()).fail()
    await world.queue.dead_letters.redrive([id])
    last = await world.claim_one()
    await last.complete()
    with raises(LeaseLost):
        await last.complete()
    found = await rest_of(events)
    assert [event.what for event in found if event.what != "claimed"] == [
        "published",
        "deferred",
        "retried",
        "given_back",
        "deferred",
        "expired",
        "failed",
        "dead",
        "redriven",
        "completed",
    ]
    assert [event.what for event in found].count("claimed") == 7
    assert found[1].what == "claimed" and found[-2].what == "claimed"
    assert {event[1:5] for event in found} == {(id, world.name, "a", "k")}
    assert found[-1].at == world.clock.now


@case("events", "tell every end without an attempt")
async def ends(world: World) -> None:
    events = await listening(world, what=["cancelled", "lapsed", "dead", "discarded"])
    cancelled, lapsing, dying = await world.publish(1, 2, 3, expires_in=timedelta(seconds=9))
    await world.queue.cancel([cancelled, cancelled])
    await world.queue.claim()
    message = await world.claim_one()
    await message.defer(error="too late", delay=timedelta(0))
    world.clock.advance(30)
    await world.upkeep()
    found = {(e.what, e.message_id) for e in await rest_of(events)}
    assert ("cancelled", cancelled) in found and ("lapsed", message.id) in found
    assert message.id in (lapsing, dying)


@case("events", "tell deaths, by giving up, by used-up attempts and by expired leases")
async def deaths(world: World) -> None:
    events = await listening(world, what=["failed", "retried", "expired", "dead", "discarded"])
    ids = await world.fill("a", 3, max_attempts=1)
    failed, retried, expired = sorted(await world.queue.claim(3), key=lambda m: m.id)
    await failed.fail("hopeless")
    assert not await retried.defer(error="bad")
    await world.expire()
    await world.queue.dead_letters.discard([failed.id])
    assert [(e.what, e.message_id) for e in await rest_of(events)] == [
        ("failed", ids[0]),
        ("dead", ids[0]),
        ("retried", ids[1]),
        ("dead", ids[1]),
        ("expired", ids[2]),
        ("dead", ids[2]),
        ("discarded", ids[0]),
    ]
    assert expired.id == ids[2]


@case("events", "of a batch come for each message")
async def batches(world: World) -> None:
    events = await listening(world)
    ids = await world.fill("a", 500)
    await world.queue.complete(await world.drain(500))
    found = await heard(events, 1500)
    for what in ("published", "claimed", "completed"):
        assert sorted(e.message_id or 0 for e in found if e.what == what) == ids


@case("events", "come only for what the reader asked for")
async def filters(world: World) -> None:
    other = world.client(name=f"{world.name} other")
    by_channel = await listening(world, channels=["a"], what=["published"])
    by_kind = await listening(world, kinds=["k", ""], what=["published", "completed"])
    everywhere = await listening(world, queues=[world.name, other.name], what=["published"])
    await world.queue.publish_many(
        [NewMessage(1, "a", kind="k"), NewMessage(2, "b", kind="x"), NewMessage(3, "b")]
    )
    await other.publish(4, channel="a")
    await world.queue.complete(await world.drain())
    assert [(e.channel, e.kind) for e in await rest_of(by_channel)] == [("a", "k")]
    found = sorted((e.what, e.kind) for e in await rest_of(by_kind))
    assert found == [("completed", ""), ("completed", "k"), ("published", ""), ("published", "k")]
    assert sorted(e.queue for e in await rest_of(everywhere)) == [world.name] * 3 + [other.name]


@case("events", "of what did not happen do not come")
async def nothing_happened(world: World) -> None:
    await world.publish(0, key="k")
    await world.queue.channel("full").limit(backlog=0)
    events = await listening(world)
    await world.queue.publish(1, key="k")
    with raises(BacklogFull):
        await world.queue.publish(1, channel="full")
    await world.queue.cancel([2**60])
    await world.queue.dead_letters.redrive([2**60])
    await world.queue.dead_letters.discard([2**60])
    assert await rest_of(events) == []


@case("events", "of the caller's transaction come with its commit, and only then")
async def transactions(world: World) -> None:
    events = await listening(world, what=["published"])
    async with await world.caller() as mine:
        await world.queue.publish(1, connection=mine.connection)
        await mine.rollback()
    assert await rest_of(events) == []
    async with await world.caller() as mine:
        published = await world.queue.publish(1, connection=mine.connection)
        assert await rest_of(events) == []
        await mine.commit()
    assert [e.message_id for e in await heard(events, 1)] == [published.id]


@case("events", "of two who settle the same lease at once, the one who lost tells nothing")
async def two_settlers(world: World) -> None:
    world.needs("open transactions")
    ends: list[What] = ["completed", "failed", "dead", "deferred", "given_back"]
    for verb in ("complete", "defer", "fail", "give_back"):
        events = await listening(world, what=ends)
        await world.publish(1, channel=verb)
        message = await world.claim_one()
        late = world.client()
        async with await world.caller() as mine:
            await message.complete(connection=mine.connection)
            waiting = asyncio.create_task(getattr(late, verb)([message]))
            await asyncio.sleep(0.2)
            await mine.commit()
        (answer,) = await waiting
        assert answer.lost
        assert [(e.what, e.message_id) for e in await rest_of(events)] == [
            ("completed", message.id)
        ]


@case("events", "that commit late are not passed over")
async def late(world: World) -> None:
    world.needs("open transactions")
    events = await listening(world, what=["published"])
    async with await world.caller() as mine:
        early = await world.queue.publish(1, connection=mine.connection)
        ids = [(await world.queue.publish(n)).id for n in range(3)]
        assert [e.message_id for e in await heard(events, 3)] == ids
        await mine.commit()
    assert [e.message_id for e in await heard(events, 1)] == [early.id]


@case("events", "come to each of several readers")
async def several(world: World) -> None:
    readers = [await listening(world, what=["published"]) for _ in range(3)]
    ids = await world.publish(1, 2)
    for reader in readers:
        assert [e.message_id for e in await rest_of(reader)] == ids


@case("events", "a reader hears from its opening on, until it is closed")
async def opening(world: World) -> None:
    await world.publish("before")
    async with world.queue.events(queues=[world.name], what=["published"], idle=SOON) as events:
        (id,) = await world.publish("during")
        assert [e.message_id for e in await rest_of(events)] == [id]
    await world.publish("after")
    assert await rest_of(events) == []


@case("events", "a reader that was away for too long is told so, and hears on")
async def away(world: World) -> None:
    events = await listening(world, what=["published"])
    (first,) = await world.publish(1)
    world.clock.advance(61)
    await world.publish("while nobody listened")
    assert [e.message_id for e in await heard(events, 2)] == [first, MISSED.message_id]
    (third,) = await world.publish(3)
    assert [e.message_id for e in await rest_of(events)] == [third]


@case("events", "the mail of a reader that is gone is swept, and it is told so")
async def swept(world: World) -> None:
    events = await listening(world, what=["published"])
    await world.publish(1)
    world.clock.advance(2 * 3600)
    for _ in range(3):
        await world.upkeep()
    assert await heard(events, 1) == [MISSED]
    (id,) = await world.publish(2)
    assert [e.message_id for e in await rest_of(events)] == [id]


@case("events", "that are none cannot be asked for")
async def refused(world: World) -> None:
    with raises(InvalidOption):
        world.queue.events(what=["exploded"])  # type: ignore[list-item]
    with raises(InvalidOption):
        world.queue.events(what="dead")  # type: ignore[arg-type]
    with raises(InvalidOption):
        world.queue.events(queues="all")
