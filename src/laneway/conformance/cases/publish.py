"""publish: what goes in comes out, and not before its time."""

import asyncio
from datetime import UTC, datetime, timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.model import ClaimStatus, NewMessage


@case("publish", "a message arrives as it was sent, with the defaults")
async def defaults(world: World) -> None:
    published = await world.queue.publish({"order": 1})
    assert (published.status, published.existing, published.refused) == ("published", False, False)
    message = await world.claim_one()
    assert message.id == published.id
    assert (message.queue, message.channel, message.kind) == (world.name, "default", "")
    assert (message.attempt, message.max_attempts, message.priority) == (1, 20, 0)
    assert message.due == message.published_at == message.first_published_at == world.clock.now
    assert (message.expires_at, message.key, message.state, message.state_type) == (None,) * 4
    assert message.headers == {}


@case("publish", "every option arrives")
async def options(world: World) -> None:
    await world.queue.publish(
        b"raw",
        channel="tenant ü",
        kind="invoice",
        key="once",
        headers={"trace": ["a", 1, None]},
        priority=7,
        expires_in=timedelta(hours=1),
        max_attempts=3,
        content_type="image/png",
    )
    message = await world.claim_one()
    assert (message.payload, message.content_type) == (b"raw", "image/png")
    assert (message.channel, message.kind, message.key) == ("tenant ü", "invoice", "once")
    assert (message.priority, message.max_attempts) == (7, 3)
    assert message.headers == {"trace": ["a", 1, None]}
    assert message.expires_at == world.later(3600)


@case("publish", "each message of a batch keeps its own options")
async def batch(world: World) -> None:
    results = await world.queue.publish_many(
        [
            1,
            NewMessage(2, kind="k", headers={"h": 1}),
            NewMessage(3, channel="b", max_attempts=2),
            NewMessage(4, priority=9, key="x"),
            NewMessage(5, expires_at=world.later(60)),
        ],
        channel="a",
    )
    assert [r.status for r in results] == ["published"] * 5
    found = {m.id: m for m in await world.drain()}
    one, two, three, four, five = (found[r.id] for r in results if r.id)
    assert [m.json() for m in (one, two, three, four, five)] == [1, 2, 3, 4, 5]
    assert [m.channel for m in (one, two, three)] == ["a", "a", "b"]
    assert [m.kind for m in (one, two, three)] == ["", "k", ""]
    assert [m.headers for m in (one, two)] == [{}, {"h": 1}]
    assert [m.max_attempts for m in (two, three)] == [20, 2]
    assert [(m.priority, m.key) for m in (three, four)] == [(0, None), (9, "x")]
    assert (four.expires_at, five.expires_at) == (None, world.later(60))


@case("publish", "a batch of nothing is nothing")
async def nothing(world: World) -> None:
    assert await world.queue.publish_many([]) == []


@case("publish", "the ids of a batch rise in its order")
async def ids_rise(world: World) -> None:
    ids = await world.fill("a", 50)
    assert ids == sorted(set(ids))


@case("publish", "thousands go in one call over many channels")
async def thousands(world: World) -> None:
    messages = [NewMessage(n, channel=f"c{n % 100}") for n in range(2000)]
    results = await world.queue.publish_many(messages)
    assert len({r.id for r in results}) == 2000
    found = await world.drain(1000)
    assert sorted(m.json() for m in found) == list(range(2000))


@case("publish", "a delayed message waits for its time, and a claim says when that is")
async def delay(world: World) -> None:
    await world.queue.publish("later", delay=timedelta(seconds=10))
    claim = await world.queue.claim()
    assert (len(claim), claim.status) == (0, ClaimStatus.EMPTY)
    assert claim.look_again == timedelta(seconds=10)
    world.clock.advance(9.999)
    assert not await world.queue.claim()
    world.clock.advance(0.001)
    message = await world.claim_one()
    assert message.due == world.clock.now
    assert message.published_at == world.later(-10)


@case("publish", "a message with a time starts at that time, in whatever zone it is written")
async def at(world: World) -> None:
    when = world.later(3600)
    await world.queue.publish("later", at=when.astimezone())
    assert not await world.queue.claim()
    world.clock.now = when
    assert (await world.claim_one()).due == when


@case("publish", "a time in the past is due at once")
async def at_past(world: World) -> None:
    await world.queue.publish("late", at=datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC))
    assert (await world.claim_one()).due.year == 2001


@case("publish", "a queue sees only its own messages")
async def queues(world: World) -> None:
    other = world.name + " other"
    await world.queue.publish("here")
    await world.queue.publish("there", queue=other)
    assert [m.text() for m in await world.drain()] == ["here"]
    assert [m.queue for m in await world.queue.claim(queues=[other])] == [other]


@case("publish", "many callers of one client at once are each answered for themselves")
async def together(world: World) -> None:
    results = await asyncio.gather(*(world.queue.publish(n, channel=str(n)) for n in range(20)))
    found = {m.id: m.json() for m in await world.drain()}
    assert [found[r.id] for r in results if r.id] == list(range(20))


@case("publish", "delays in one batch are each kept")
async def mixed_delays(world: World) -> None:
    delays = (5, None, 1, 3)
    await world.queue.publish_many(
        [NewMessage(d, delay=None if d is None else timedelta(seconds=d)) for d in delays]
    )
    seen = []
    for _ in range(6):
        seen.append([m.json() for m in await world.queue.claim(10)])
        world.clock.advance(1)
    assert seen == [[None], [1], [], [3], [], [5]]
