"""claim by kind: others stay where they are, and hold up nobody."""

from collections import Counter
from datetime import timedelta

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import LanewayError
from laneway.model import ClaimStatus, NewMessage


async def _mixed(world: World, count: int, channel: str = "a") -> dict[str, list[int]]:
    """``count`` messages of each of two kinds, in turn."""
    ids: dict[str, list[int]] = {"red": [], "blue": []}
    for number in range(count):
        for kind in ids:
            ids[kind] += await world.publish(number, kind=kind, channel=channel)
    return ids


async def _drain(world: World, *kinds: str, limit: int = 10) -> list[AsyncMessage]:
    found: list[AsyncMessage] = []
    for _ in range(200):
        claim = await world.queue.claim(limit, kinds=kinds)
        found += claim
        if not claim and claim.status is not ClaimStatus.BUSY:
            return found
    raise AssertionError("busy all the time")


@case("kinds", "a claim takes only what it names, in order, and leaves the rest for others")
async def only_named(world: World) -> None:
    world.needs("claims by kind")
    ids = await _mixed(world, 25)
    blue = await _drain(world, "blue")
    assert [m.id for m in blue] == ids["blue"]
    empty = await world.queue.claim(10, kinds=["blue"])
    assert (len(empty), empty.status, empty.look_again) == (0, ClaimStatus.EMPTY, None)
    assert [m.id for m in await world.drain()] == ids["red"]
    await world.queue.complete(blue)
    assert not await world.drain()


@case("kinds", "what waited before the first claim by kind is found, and what came later")
async def before_and_after(world: World) -> None:
    world.needs("claims by kind")
    early = await _mixed(world, 3)
    held = await world.queue.claim(2)
    assert [m.id for m in await _drain(world, "blue")] == early["blue"][1:]
    late = await _mixed(world, 2)
    await world.queue.give_back(held)
    blue = await _drain(world, "blue")
    assert [m.id for m in blue] == [early["blue"][0], *late["blue"]]
    assert [m.id for m in await _drain(world, "red", "green")] == early["red"] + late["red"]


@case("kinds", "several kinds come in their common order")
async def several(world: World) -> None:
    world.needs("claims by kind")
    ids = []
    for number in range(12):
        ids += await world.publish(number, kind=("red", "blue", "green")[number % 3], channel="a")
    found = await _drain(world, "green", "red", limit=3)
    assert [m.id for m in found] == [id for n, id in enumerate(ids) if n % 3 != 1]


@case("kinds", "channels whose messages others took hide none that has more")
async def taken_by_others(world: World) -> None:
    world.needs("claims by kind")
    await _drain(world, "red")
    await world.publish(*range(3), kind="red", channel="a")
    assert len(await world.queue.claim(2)) == 2
    world.clock.advance(1)
    assert len(await world.queue.claim(2)) == 1
    ids = await world.publish(1, 2, kind="red", channel="b")
    assert [m.id for m in await world.queue.claim(1)] == ids[:1]
    world.clock.advance(1)
    claim = await world.queue.claim(1, kinds=["red"])
    assert ([m.id for m in claim], claim.status) == (ids[1:], ClaimStatus.GOT)


@case("kinds", "the empty kind is a kind")
async def empty_kind(world: World) -> None:
    world.needs("claims by kind")
    plain = await world.publish(1, 2, channel="a")
    await world.publish(3, kind="red", channel="a")
    assert [m.id for m in await _drain(world, "")] == plain


@case("kinds", "priorities hold among the kinds that are claimed")
async def priorities(world: World) -> None:
    world.needs("claims by kind")
    await world.publish(1, kind="blue", priority=9, channel="a")
    low = await world.publish(1, kind="red", channel="a")
    high = await world.publish(2, kind="red", priority=5, channel="a")
    assert [m.id for m in await world.queue.claim(2, kinds=["red"])] == high + low


@case("kinds", "one at a time: an elder message of another kind comes first")
async def strict(world: World) -> None:
    world.needs("claims by kind")
    channel = world.queue.channel("a")
    await channel.limit(concurrency=1)
    red = await world.publish(1, kind="red", channel="a")
    blue = await world.publish(2, kind="blue", channel="a")
    for _ in range(3):
        assert not await world.queue.claim(10, kinds=["blue"])
    first = await world.claim_one(kinds=["red"])
    assert [first.id] == red
    assert not await world.queue.claim(10, kinds=["blue", "red"])
    await first.complete()
    second = await world.claim_one(kinds=["blue"])
    assert [second.id] == blue


@case("kinds", "one at a time: the next of another kind may be cancelled, or put off")
async def strict_head_goes(world: World) -> None:
    world.needs("claims by kind")
    await world.queue.channel("a").limit(concurrency=1)
    red = await world.publish(1, 2, kind="red", channel="a")
    blue = await world.publish(3, kind="blue", channel="a")
    assert not await world.queue.claim(kinds=["blue"])
    await world.queue.cancel([red[0]])
    assert not await world.queue.claim(kinds=["blue"])
    (head,) = await world.queue.claim(kinds=["red"])
    await head.defer(delay=timedelta(hours=1))
    assert (await world.claim_one(kinds=["blue"])).id == blue[0]


@case("kinds", "a limit counts the messages of all kinds, and a full channel is blocked")
async def concurrency(world: World) -> None:
    world.needs("claims by kind")
    await world.queue.channel("a").limit(concurrency=3)
    await _mixed(world, 5)
    red = await world.queue.claim(2, kinds=["red"])
    blue = await world.queue.claim(5, kinds=["blue"])
    assert (len(red), len(blue)) == (2, 1)
    full = await world.queue.claim(5, kinds=["blue"])
    assert (len(full), full.status) == (0, ClaimStatus.BLOCKED)
    await world.queue.complete(red)
    assert len(await world.queue.claim(5, kinds=["blue"])) == 2


@case("kinds", "a rate counts the starts of all kinds")
async def rate(world: World) -> None:
    world.needs("claims by kind")
    await world.queue.channel("a").limit(rate=1, burst=4)
    await _mixed(world, 10)
    world.clock.advance(10)
    assert len(await world.queue.claim(10, kinds=["red"])) == 4
    blocked = await world.queue.claim(10, kinds=["blue"])
    assert (len(blocked), blocked.status) == (0, ClaimStatus.BLOCKED)
    assert blocked.look_again == timedelta(seconds=1)
    world.clock.advance(2)
    assert len(await world.queue.claim(10, kinds=["blue"])) == 2


@case("kinds", "a claim by kind is fair over the channels that have the kind")
async def fair(world: World) -> None:
    world.needs("claims by kind")
    assert not await world.queue.claim(kinds=["red"])
    for channel in "abc":
        await world.fill(channel, 60, kind="red")
    await world.fill("c", 300, kind="blue")
    await world.fill("d", 60, kind="blue")
    counts: Counter[str] = Counter()
    world.clock.advance(0.001)
    for _ in range(9):
        claim = await world.queue.claim(10, kinds=["red"])
        counts.update(m.channel for m in claim)
        await world.queue.claim(10, kinds=["blue"])
        world.clock.advance(0.001)
    assert counts == {"a": 30, "b": 30, "c": 30}


@case("kinds", "a channel has one share, however many kinds of it are claimed")
async def one_share(world: World) -> None:
    world.needs("claims by kind")
    await world.fill("a", 100, kind="red")
    await world.fill("a", 100, kind="blue")
    await world.fill("b", 100, kind="red")
    counts: Counter[str] = Counter()
    world.clock.advance(0.001)
    for _ in range(10):
        counts.update(m.channel for m in await world.queue.claim(10, kinds=["red", "blue"]))
        world.clock.advance(0.001)
    assert counts == {"a": 50, "b": 50}


@case("kinds", "whoever serves one kind of a channel takes no turn from its other kinds")
async def own_turns(world: World) -> None:
    world.needs("claims by kind")
    assert not await world.queue.claim(kinds=["red"])
    await world.fill("a", 50, kind="red")
    await world.fill("a", 50, kind="blue")
    await world.fill("b", 50, kind="red")
    counts: Counter[str] = Counter()
    world.clock.advance(0.001)
    for _ in range(8):
        counts.update(m.channel for m in await world.queue.claim(5, kinds=["red"]))
        world.clock.advance(0.001)
        await world.queue.claim(5, kinds=["blue"])
        world.clock.advance(0.001)
    assert counts == {"a": 20, "b": 20}


@case("kinds", "later messages of other kinds do not make a claim look again")
async def look_again(world: World) -> None:
    world.needs("claims by kind")
    assert not await world.queue.claim(kinds=["blue"])
    await world.publish(1, kind="red", channel="a", delay=timedelta(minutes=1))
    claim = await world.queue.claim(kinds=["blue"])
    assert (claim.status, claim.look_again) == (ClaimStatus.EMPTY, None)
    await world.publish(1, kind="blue", channel="a", delay=timedelta(minutes=5))
    claim = await world.queue.claim(kinds=["blue"])
    assert claim.status is ClaimStatus.EMPTY
    assert claim.look_again is not None
    assert timedelta(minutes=4) < claim.look_again <= timedelta(minutes=5)
    world.clock.advance(301)
    assert (await world.claim_one(kinds=["blue"])).kind == "blue"


@case("kinds", "what comes back is found by its kind: deferred, expired, redriven, run now")
async def comes_back(world: World) -> None:
    world.needs("claims by kind")
    (id,) = await world.publish(1, kind="red", channel="a")
    await world.publish(2, kind="blue", channel="a")
    await (await world.claim_one(kinds=["red"])).defer(delay=timedelta(seconds=5))
    assert not await world.queue.claim(kinds=["red"])
    world.clock.advance(6)
    assert (await world.claim_one(kinds=["red"])).id == id
    await world.expire()
    world.clock.advance(60)
    message = await world.claim_one(kinds=["red"])
    await message.fail()
    await world.queue.dead_letters.redrive([id])
    message = await world.claim_one(kinds=["red"])
    await message.defer(delay=timedelta(hours=1))
    await world.queue.run_now([id])
    assert (await world.claim_one(kinds=["red"])).id == id
    assert [m.kind for m in await world.drain()] == ["blue"]


@case("kinds", "pauses hold for claims by kind, of channels, queues and kinds")
async def pauses(world: World) -> None:
    world.needs("claims by kind")
    await _mixed(world, 2)
    channel = world.queue.channel("a")
    await channel.pause()
    assert not await world.queue.claim(10, kinds=["red"])
    await channel.resume()
    await world.queue.pause()
    assert (await world.queue.claim(10, kinds=["red"])).status is ClaimStatus.BLOCKED
    await world.queue.resume()
    await world.queue.pause(kind="blue")
    assert not await _drain(world, "blue")
    assert len(await _drain(world, "red")) == 2


@case("kinds", "many kinds in one channel, and one channel among many")
async def many(world: World) -> None:
    world.needs("claims by kind")
    messages = [
        NewMessage(n, kind=f"kind {n % 9}", channel=f"c{n % 7}", priority=n % 2) for n in range(252)
    ]
    published = await world.queue.publish_many(messages)
    ids = {p.id: message.kind for p, message in zip(published, messages, strict=True)}
    assert len(await world.queue.claim(20)) == 20
    seen: Counter[str] = Counter()
    for kind in range(9):
        found = await _drain(world, f"kind {kind}", limit=5)
        assert {ids[m.id] for m in found} <= {f"kind {kind}"}
        seen[f"kind {kind}"] += len(found)
    assert sum(seen.values()) == 232
    assert not await world.drain()


@case("kinds", "no kinds at all, and what is no kind, is refused")
async def refused(world: World) -> None:
    for kinds in ([], "red", [1]):
        with raises(LanewayError) as caught:
            await world.queue.claim(kinds=kinds)  # type: ignore[arg-type]
        assert "kind" in str(caught.error)
