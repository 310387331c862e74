"""What operators look at: messages wherever they are, channels, what ended, totals."""

import asyncio
from datetime import timedelta

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption
from laneway.model import ChannelStats, HistoryEntry, Policy


async def ids(world: World, **options: object) -> list[int]:
    found = await world.queue.messages(queue=world.name, **options)  # type: ignore[arg-type]
    return [info.id for info in found]


@case("messages", "are listed by state, and follow a message through its states")
async def states(world: World) -> None:
    first, second = await world.publish(1, 2)
    (later,) = await world.publish(3, delay=timedelta(hours=1))
    message = await world.claim_one()
    assert await ids(world) == [first, second, later]
    assert await ids(world, state="leased") == [message.id] == [first]
    assert await ids(world, state="waiting") == [second]
    assert await ids(world, state="scheduled") == [later]
    await message.fail("no")
    assert await ids(world) == [second, later]
    assert await ids(world, state="dead") == [first]
    world.clock.advance(3600)
    assert await ids(world, state="waiting") == [second, later]


@case("messages", "by channel and kind, in pages")
async def filters(world: World) -> None:
    a = await world.fill("a", 3, kind="x")
    b = await world.fill("b", 3, kind="y")
    assert await ids(world, channel="a") == a
    assert await ids(world, kind="y") == b
    assert await ids(world, channel="a", kind="y") == []
    assert await ids(world, limit=2) == a[:2]
    assert await ids(world, limit=10, after=a[1]) == [a[2], *b]
    await world.queue.claim(6)
    assert await ids(world, channel="b", state="leased", limit=2) == b[:2]
    assert await ids(world, channel="b", state="leased", after=b[1]) == b[2:]
    everywhere = await world.queue.messages(after=a[0] - 1, limit=1)
    assert [info.id for info in everywhere] == a[:1]


@case("messages", "dead ones by channel and kind, in pages")
async def dead(world: World) -> None:
    a = await world.fill("a", 2, kind="x")
    b = await world.fill("b", 2, kind="y")
    await world.queue.fail(await world.queue.claim(4), "no")
    assert await ids(world, state="dead") == [*a, *b]
    assert await ids(world, state="dead", channel="a") == a
    assert await ids(world, state="dead", kind="y") == b
    assert await ids(world, state="dead", limit=2, after=a[0]) == [a[1], b[0]]


@case("messages", "of a state nobody knows are refused")
async def unknown_state(world: World) -> None:
    with raises(InvalidOption):
        await world.queue.messages(state="lost")  # type: ignore[arg-type]


@case("message", "says where it is: waiting, leased by whom until when, dead and why, or gone")
async def whereabouts(world: World) -> None:
    published_at = world.clock.now
    (id,) = await world.publish({"n": 1}, channel="a", kind="k", key="key", headers={"h": 1})
    info = await world.queue.message(id)
    assert info is not None
    assert (info.queue, info.channel, info.kind, info.key) == (world.name, "a", "k", "key")
    assert (info.state, info.attempt, info.fence, info.worker) == ("waiting", 0, None, None)
    assert info.due == info.published_at == info.first_published_at == published_at
    assert (info.headers, info.payload_size) == ({"h": 1}, len(b'{"n":1}'))
    message = await world.claim_one()
    info = await world.queue.message(id)
    assert info is not None
    assert (info.state, info.attempt, info.fence) == ("leased", 1, message.fence)
    assert (info.worker, info.until) == (world.queue.worker, message.until)
    assert info.claimed_at == message.claimed_at
    await message.fail("no such customer", error=ValueError("bad"))
    info = await world.queue.message(id)
    assert info is not None
    assert (info.state, info.reason, info.error_type) == ("dead", "no such customer", "ValueError")
    assert (info.died_at, info.error, info.headers) == (world.clock.now, "bad", {"h": 1})
    await world.queue.dead_letters.discard([id])
    assert await world.queue.message(id) is None


@case("message", "what its handler saved is read by itself, waiting or dead")
async def saved(world: World) -> None:
    (id,) = await world.publish(1)
    assert await world.queue.saved_state(id) is None
    await (await world.claim_one()).defer(delay=0, state={"page": 7})
    assert await world.queue.saved_state(id) == b'{"page":7}'
    await (await world.claim_one()).fail()
    assert await world.queue.saved_state(id) == b'{"page":7}'


@case("message", "its payload is read by itself, waiting or dead")
async def payload(world: World) -> None:
    (id,) = await world.publish(b"\x00\xff")
    assert await world.queue.payload(id) == b"\x00\xff"
    await (await world.claim_one()).fail()
    assert await world.queue.payload(id) == b"\x00\xff"
    await world.queue.dead_letters.discard([id])
    assert await world.queue.payload(id) is None
    assert await world.queue.saved_state(id) is None


@case("channels", "are listed with stats and policies, the fullest first")
async def channels(world: World) -> None:
    await world.fill("a", 1)
    await world.fill("b", 3)
    await world.queue.channel("a").limit(concurrency=2, rate=5, weight=3)
    await world.queue.channel("idle").limit(backlog=7)
    await world.queue.channel("none").unlimited()
    found = await world.queue.channels(queue=world.name)
    assert [info.channel for info in found] == ["b", "a", "idle"]
    assert found.next is None and all(info.stats.exact for info in found)
    assert [info.stats.waiting for info in found] == [3, 1, 0]
    assert found[0].policy == Policy()
    assert found[1].policy == Policy(concurrency=2, rate=5.0, burst=5, weight=3.0)
    assert found[2].stats == ChannelStats(world.name, "idle")
    assert len(await world.queue.channels(queue=world.name, limit=2)) == 2


@case("channels", "paused ones can be asked for")
async def paused(world: World) -> None:
    await world.fill("a", 1)
    await world.fill("b", 1)
    await world.queue.channel("b").pause()
    found = await world.queue.channels(queue=world.name, paused=True)
    assert [(info.channel, info.policy.paused) for info in found] == [("b", True)]
    found = await world.queue.channels(queue=world.name, paused=False)
    assert [info.channel for info in found] == ["a"]


@case("channels", "are listed page by page, and by name, prefix and policy")
async def channel_pages(world: World) -> None:
    for number, channel in enumerate(("north-1", "north-2", "south-1", "south-2", "südwest")):
        await world.fill(channel, 5 - number)
    await world.queue.channel("south-2").limit(concurrency=3)
    await world.queue.channel("idle").limit(weight=2)
    seen, after = [], None
    for _ in range(10):
        page = await world.queue.channels(queue=world.name, limit=2, after=after)
        seen += [info.channel for info in page]
        after = page.next
        if after is None:
            break
    assert seen == ["north-1", "north-2", "south-1", "south-2", "südwest", "idle"]

    async def names(**options: object) -> list[str]:
        found = await world.queue.channels(queue=world.name, **options)  # type: ignore[arg-type]
        return sorted(info.channel for info in found)

    assert await names(prefix="south-") == ["south-1", "south-2"]
    assert await names(prefix="s") == ["south-1", "south-2", "südwest"]
    assert await names(prefix="x") == []
    assert await names(channel="north-2") == ["north-2"]
    assert await names(channel="north") == []
    assert await names(limited=True) == ["idle", "south-2"]
    assert await names(limited=False, prefix="n") == ["north-1", "north-2"]
    assert await names(prefix="south", limited=True) == ["south-2"]
    with raises(InvalidOption):
        await world.queue.channels(after="nowhere")
    with raises(InvalidOption):
        await world.queue.channels(limited=1)  # type: ignore[arg-type]


@case("channels", "say why they wait")
async def waits_for(world: World) -> None:
    for channel in ("free", "paused", "busy", "slow", "leaving"):
        await world.fill(channel, 3)
    await world.queue.channel("paused").pause()
    await world.queue.channel("busy").limit(concurrency=1)
    await world.queue.channel("slow").limit(rate=0.01, burst=1)
    await world.queue.channel("leaving").remove()
    assert len(await world.queue.claim(100)) == 3 + 0 + 1 + 1 + 3
    found = {info.channel: info for info in await world.queue.channels(queue=world.name)}
    assert {channel: info.waits_for for channel, info in found.items()} == {
        "free": None,
        "paused": "paused",
        "busy": "concurrency",
        "slow": "rate",
        "leaving": "closing",
    }
    assert [found[channel].stats.leased for channel in ("free", "busy", "slow")] == [3, 1, 1]


@case("dead letter", "they are counted as a redrive would take them, up to a number")
async def counted(world: World) -> None:
    ids = await world.fill("a", 5)
    await world.queue.fail(await world.queue.claim(3), "no")
    letters = world.queue.dead_letters
    assert await letters.count(queue=world.name) == 3
    assert await letters.count(queue=world.name, reason="yes") == 0
    assert await letters.count(queue=world.name, limit=2) == 2
    assert await letters.count([*ids[:2], ids[4]]) == 2
    with raises(InvalidOption):
        await letters.count()


async def ended_since(
    world: World, position: str, least: int = 0
) -> tuple[list[HistoryEntry], str]:
    """What ended in this world's queue: at least so much, if it comes at all. Any transaction of
    the server, a vacuum's too, may hold the rest back for a moment."""
    found: list[HistoryEntry] = []
    for _ in range(100):
        entries, position = await world.queue.history_since(position)
        found += [entry for entry in entries if entry.queue == world.name]
        if len(found) >= least:
            break
        await asyncio.sleep(0.05)
    return found, position


@case("history", "is followed from a position: nothing is missed, nothing comes twice")
async def followed(world: World) -> None:
    await world.queue.publish("before")
    await (await world.claim_one()).complete()
    nothing, position = await world.queue.history_since()
    assert nothing == []
    ids = await world.fill("a", 3)
    for message in await world.queue.claim(3):
        await message.complete()
    entries, position = await ended_since(world, position, 3)
    assert [entry.message_id for entry in entries] == ids
    assert (await ended_since(world, position))[0] == []
    (id,) = await world.publish("more")
    await world.queue.cancel([id])
    (entry,), position = await ended_since(world, position, 1)
    assert (entry.message_id, entry.outcome) == (id, "cancelled")


@case("history", "pages of one follow each other")
async def followed_in_pages(world: World) -> None:
    _, position = await world.queue.history_since()
    ids = await world.fill("a", 3)
    await world.queue.complete(await world.queue.claim(3))
    await ended_since(world, position, 3)  # all are settled now
    seen = []
    for _ in ids:
        (entry,), position = await world.queue.history_since(position, limit=1)
        seen.append(entry.message_id)
    assert sorted(seen) == ids
    assert (await world.queue.history_since(position, limit=1)).entries == []


@case("history", "what an open transaction ended is not seen before it commits")
async def followed_open(world: World) -> None:
    early, late = await world.publish(1, 2)
    messages = {message.id: message for message in await world.queue.claim(2)}
    _, position = await world.queue.history_since()
    async with await world.caller() as mine:
        await messages[late].complete(connection=mine.connection)
        seen, position = await ended_since(world, position)
        assert not seen
        await mine.commit()
    await messages[early].complete()
    entries, _ = await ended_since(world, position, 2)
    assert sorted(entry.message_id for entry in entries) == [early, late]


@case("history", "a transaction that commits late is not passed over by what ended meanwhile")
async def followed_late(world: World) -> None:
    world.needs("open transactions")
    early, late = await world.publish(1, 2)
    messages = {message.id: message for message in await world.queue.claim(2)}
    _, position = await world.queue.history_since()
    seen: list[int] = []
    async with await world.caller() as mine:
        await messages[late].complete(connection=mine.connection)
        await messages[early].complete()
        entries, position = await ended_since(world, position)
        seen += [entry.message_id for entry in entries]
        await mine.commit()
    entries, position = await ended_since(world, position, 2 - len(seen))
    seen += [entry.message_id for entry in entries]
    assert sorted(seen) == [early, late]


@case("totals", "rise with every publish and every end")
async def totals(world: World) -> None:
    before = await world.queue.totals()
    await world.fill("a", 3)
    await (await world.claim_one()).complete()
    after = await world.queue.totals()
    assert after.published >= before.published + 3
    assert after.ended >= before.ended + 1


@case("clock", "is the database's, or the one that a test gives")
async def the_clock(world: World) -> None:
    assert await world.queue.clock() == world.clock.now
    real = world.client(clock=None)
    first, second = await real.clock(), await real.clock()
    assert first <= second and first.utcoffset() == timedelta(0)
