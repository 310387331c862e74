"""Key modes: what a publish does whose key is in use."""

import asyncio
from datetime import timedelta
from typing import Any

from laneway.conformance.caller_transactions import Caller
from laneway.conformance.registry import CaseSkipped, case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, ChannelClosed, DatabaseFailed, InvalidInput
from laneway.model import NewMessage, Published

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


async def replace(world: World, payload: Any, **more: Any) -> Published:
    return await world.queue.publish(payload, key="k", on_duplicate="replace", **more)


async def debounce(world: World, payload: Any, **more: Any) -> Published:
    delay = more.pop("delay", 10)
    return await world.queue.publish(payload, key="k", on_duplicate="debounce", delay=delay, **more)


async def texts(world: World) -> list[str]:
    """Of all that can start; they are completed."""
    messages = await world.drain()
    await world.queue.complete(messages)
    return [message.text() for message in messages]


@case("key mode", "replace publishes if the key is free")
async def free(world: World) -> None:
    assert (await replace(world, "first")).status == "published"
    assert await texts(world) == ["first"]
    assert (await replace(world, "second")).status == "published"


@case("key mode", "replace gives a waiting message the new content; its place and id stay")
async def content(world: World) -> None:
    old = await world.queue.publish("old", key="k", headers={"a": 1}, priority=3)
    await world.queue.publish("between")
    world.clock.advance(5)
    new = await replace(world, b"new", headers={"b": 2}, max_attempts=7, content_type="x/y")
    assert new == Published(old.id, "replaced") and new.replaced and not new.existing
    first, second = await world.drain()
    assert (first.id, first.payload, first.headers) == (old.id, b"new", {"b": 2})
    assert (first.max_attempts, first.content_type, first.priority) == (7, "x/y", 0)
    assert (first.attempt, second.text()) == (1, "between")


@case("key mode", "replace changes a priority, and the order follows")
async def priority(world: World) -> None:
    await world.queue.publish("low", key="k")
    await world.queue.publish("other", priority=5)
    assert (await replace(world, "high", priority=9)).replaced
    assert await texts(world) == ["high", "other"]
    await world.queue.publish("high", key="k", priority=9)
    await world.queue.publish("other", priority=5)
    assert (await replace(world, "low")).replaced
    assert await texts(world) == ["other", "low"]


@case("key mode", "replace leaves the due time alone, whatever the new delay says")
async def due(world: World) -> None:
    await world.queue.publish("old", key="k", delay=60)
    world.clock.advance(30)
    assert (await replace(world, "new", delay=600)).replaced
    world.clock.advance(29)
    assert await texts(world) == []
    world.clock.advance(1)
    assert await texts(world) == ["new"]


@case("key mode", "behind a running message the new one waits until that has ended")
async def behind(world: World) -> None:
    first = await world.queue.publish("first", key="k")
    running = await world.claim_one()
    second = await replace(world, "second")
    assert second.status == "published" and second.id != first.id
    world.clock.advance(1)
    assert await texts(world) == []
    assert (await world.queue.publish("kept", key="k")) == Published(second.id, "existing")
    assert (await replace(world, "third")) == Published(second.id, "replaced")
    await running.complete()
    (last,) = await world.queue.claim(9)
    assert (last.text(), last.id, last.key) == ("third", second.id, "k")
    assert (await world.queue.publish("kept", key="k")).existing
    await last.complete()
    assert (await world.queue.publish("again", key="k")).status == "published"


@case("key mode", "every end of the running message lets the next one start")
async def ends(world: World) -> None:
    for end in ("complete", "fail", "expired"):
        await world.queue.publish("first", key="k", channel=end, max_attempts=1)
        running = await world.claim_one()
        await replace(world, "second", channel=end)
        assert await texts(world) == []
        if end == "complete":
            await running.complete()
        elif end == "fail":
            await running.fail()
        else:
            world.clock.advance(3600)
            await world.upkeep()
        assert await texts(world) == ["second"], end


@case("key mode", "a message that is put back runs again before the one behind it")
async def put_back(world: World) -> None:
    await world.queue.publish("first", key="k")
    running = await world.claim_one()
    await replace(world, "second")
    await running.defer()
    again = await world.claim_one()
    assert again.text() == "first"
    assert (await replace(world, "third")).replaced
    await again.give_back()
    world.clock.advance(1)
    await (await world.claim_one()).complete()
    assert await texts(world) == ["third"]


@case(
    "key mode", "cancelled or lapsed behind a running message, the key is the running one's again"
)
async def cancelled_behind(world: World) -> None:
    for end in ("cancel", "lapse"):
        first = await world.queue.publish("first", key="k")
        running = await world.claim_one()
        second = await replace(world, "second", expires_in=5)
        assert second.id is not None
        if end == "cancel":
            (done,) = await world.queue.cancel([second.id])
            assert done.status == "cancelled"
        else:
            world.clock.advance(6)
            await world.upkeep()
        assert (await world.queue.publish("x", key="k")) == Published(first.id, "existing")
        third = await replace(world, "third")
        assert third.status == "published"
        await running.complete()
        assert await texts(world) == ["third"]


@case("key mode", "run_now leaves what waits behind a running message where it is")
async def run_now(world: World) -> None:
    await world.queue.publish("first", key="k")
    running = await world.claim_one()
    second = await replace(world, "second")
    assert second.id is not None
    (made,) = await world.queue.run_now([second.id])
    assert made.status == "waiting"
    assert await texts(world) == []
    await running.complete()
    assert await texts(world) == ["second"]


@case("key mode", "behind a running message a delay counts from the publish")
async def behind_delay(world: World) -> None:
    await world.queue.publish("first", key="k")
    running = await world.claim_one()
    await replace(world, "second", delay=60)
    world.clock.advance(10)
    await running.complete()
    assert await texts(world) == []
    world.clock.advance(50)
    assert await texts(world) == ["second"]


@case("key mode", "a message that waits for its retry is replaced, with all attempts and no state")
async def retry(world: World) -> None:
    await world.queue.publish("old", key="k", max_attempts=2)
    await (await world.claim_one()).defer(state="half", error="boom")
    assert (await replace(world, "new", max_attempts=2)).replaced
    message = await world.claim_one()
    assert (message.text(), message.state, message.attempt) == ("new", None, 2)
    await message.defer(error="boom")
    assert (await world.claim_one()).text() == "new"


@case("key mode", "a dead letter gives its key up to what replaces it")
async def dead(world: World) -> None:
    first = await world.queue.publish("bad", key="k")
    await (await world.claim_one()).fail()
    second = await replace(world, "good")
    assert second.status == "published" and second.id != first.id
    assert await world.queue.dead_letters.redrive(queue=world.name) == 1
    assert sorted(await texts(world)) == ["bad", "good"]


@case("key mode", "within its window a key that has ended replaces nothing")
async def window(world: World) -> None:
    first = await world.queue.publish("first", key="k", key_window=MINUTE)
    await (await world.claim_one()).complete()
    assert await replace(world, "second") == Published(first.id, "existing")
    world.clock.advance(60)
    assert (await replace(world, "third")).status == "published"


@case(
    "key mode", "a message of another channel or kind is not replaced, also with a key of the queue"
)
async def elsewhere(world: World) -> None:
    wide: dict[str, Any] = {"key_scope": "queue"}
    first = await world.queue.publish("first", key="k", channel="a", kind="x", **wide)
    for more in ({"channel": "b", "kind": "x"}, {"channel": "a", "kind": "y"}):
        assert await replace(world, "second", **more, **wide) == Published(first.id, "existing")
    running = await world.claim_one()
    assert await replace(world, "second", channel="b", **wide) == Published(first.id, "existing")
    await running.fail()
    assert await replace(world, "second", channel="b", **wide) == Published(first.id, "existing")
    assert (await replace(world, "third", channel="a", kind="x", **wide)).status == "published"


@case("key mode", "each channel and kind replaces its own")
async def own(world: World) -> None:
    places: list[dict[str, Any]] = [
        {"channel": "a"},
        {"channel": "b"},
        {"channel": "a", "kind": "x"},
    ]
    first = [await replace(world, "first", **place) for place in places]
    assert [one.status for one in first] == ["published"] * 3
    second = [await replace(world, "second", **place) for place in places]
    assert second == [Published(one.id, "replaced") for one in first]
    running = await world.drain()
    assert [message.text() for message in running] == ["second"] * 3
    third = [await replace(world, "third", **place) for place in places]
    assert [one.status for one in third] == ["published"] * 3
    await world.queue.complete(running[:1])
    assert await texts(world) == ["third"]
    await world.queue.complete(running[1:])
    assert await texts(world) == ["third"] * 2


@case("key mode", "a batch with one key in several channels replaces in each")
async def batch_of_channels(world: World) -> None:
    def new(channel: str, payload: str) -> NewMessage:
        return NewMessage(payload, channel, key="k", on_duplicate="replace")

    first = await world.queue.publish_many([new("a", "1"), new("b", "2"), new("a", "3")])
    assert [r.status for r in first] == ["existing", "published", "published"]
    again = await world.queue.publish_many([new("a", "4"), new("b", "5")])
    assert again == [Published(first[2].id, "replaced"), Published(first[1].id, "replaced")]
    assert sorted(await texts(world)) == ["4", "5"]


@case("key mode", "of one key in a batch the last that replaces wins")
async def in_batch(world: World) -> None:
    def new(payload: str, mode: Any = "replace", key: str | None = "k") -> NewMessage:
        return NewMessage(payload, key=key, on_duplicate=mode)

    first = await world.queue.publish_many([new("a"), new("x", "keep", None), new("b")])
    assert [r.status for r in first] == ["existing", "published", "published"]
    assert first[0].id == first[2].id
    again = await world.queue.publish_many([new("c"), new("d"), new("e", "keep")])
    assert [r.status for r in again] == ["existing", "replaced", "existing"]
    assert {r.id for r in again} == {first[2].id}
    assert sorted(await texts(world)) == ["d", "x"]


@case("key mode", "many keys at once, some free, some waiting, some running")
async def many(world: World) -> None:
    await world.queue.publish_many([NewMessage("old", key=f"k{n}") for n in range(20)])
    running = await world.queue.claim(10)
    ours = {message.key for message in running}
    new = [NewMessage(n, key=f"k{n}", on_duplicate="replace") for n in range(30)]
    results = await world.queue.publish_many(new)
    for n, result in enumerate(results):
        wanted = "published" if f"k{n}" in ours or n >= 20 else "replaced"
        assert result.status == wanted, n
    waiting = await world.queue.claim(99)
    assert sorted(m.json() for m in waiting) == [n for n in range(30) if f"k{n}" not in ours]
    await world.queue.complete([*running, *waiting])
    assert len(await world.queue.claim(99)) == 10


@case("key mode", "debounce moves the due time with every publish, up to its bound")
async def debounced(world: World) -> None:
    first = await debounce(world, "a", debounce_for=25)
    assert first.status == "published"
    for payload in ("b", "c"):
        world.clock.advance(9)
        assert await debounce(world, payload, debounce_for=25) == Published(first.id, "replaced")
    world.clock.advance(6)  # 24 s after the first
    assert await texts(world) == []
    assert (await debounce(world, "d", debounce_for=25)).replaced
    world.clock.advance(1)
    assert (await debounce(world, "e", debounce_for=25)).replaced
    assert await texts(world) == ["e"]
    assert (await debounce(world, "f", debounce_for=25)).status == "published"
    world.clock.advance(10)
    assert await texts(world) == ["f"]


@case("key mode", "debounce without a bound of its own may wait for ten delays")
async def default_bound(world: World) -> None:
    await debounce(world, "0")
    for n in range(1, 12):
        world.clock.advance(9)
        assert (await debounce(world, str(n))).replaced
    assert await texts(world) == []
    world.clock.advance(1)  # 100 s after the first
    assert await texts(world) == ["11"]


@case("key mode", "debounce behind a running message moves the time at which that one may start")
async def debounced_behind(world: World) -> None:
    await world.queue.publish("first", key="k")
    running = await world.claim_one()
    await debounce(world, "a")
    world.clock.advance(8)
    assert (await debounce(world, "b")).replaced
    await running.complete()
    world.clock.advance(9)
    assert await texts(world) == []
    world.clock.advance(1)
    assert await texts(world) == ["b"]


@case("key mode", "a full channel lets a message be replaced, and takes none behind a running one")
async def full(world: World) -> None:
    channel = world.queue.channel("a")
    await world.queue.publish("one", key="k", channel="a")
    await channel.limit(backlog=1)
    assert (await replace(world, "two", channel="a")).replaced
    running = await world.claim_one()
    with raises(BacklogFull):
        await replace(world, "three", channel="a")
    await running.complete()
    assert await texts(world) == []
    await world.queue.publish("one", key="k", channel="a", delay=60)
    await channel.remove()
    with raises(ChannelClosed):
        await replace(world, "two", channel="a")


@case("key mode", "what lapses is what was published last")
async def expiry(world: World) -> None:
    await world.queue.publish("old", key="k", expires_in=5)
    assert (await replace(world, "new")).replaced
    world.clock.advance(6)
    await world.upkeep()
    assert await texts(world) == ["new"]
    await world.queue.publish("old", key="k")
    assert (await replace(world, "new", expires_in=5)).replaced
    world.clock.advance(6)
    await world.upkeep()
    assert await texts(world) == []
    assert (await world.queue.publish("next", key="k")).status == "published"


@case("key mode", "topics replace in each queue separately")
async def topics(world: World) -> None:
    topic = world.queue.topic("t")
    await topic.subscribe(world.name)
    await topic.subscribe(world.name + " other")
    await world.queue.publish("old", key="k")
    copies = await topic.publish("new", key="k", on_duplicate="replace")
    assert {c.queue: c.status for c in copies} == {
        world.name: "replaced",
        world.name + " other": "published",
    }
    assert await texts(world) == ["new"]


@case("key mode", "of many at once one message is left, with one of their payloads")
async def race(world: World) -> None:
    clients = [world.client() for _ in range(4)]

    async def publish(n: int) -> Published:
        return await clients[n % 4].publish(n, key="k", on_duplicate="replace")

    results = await asyncio.gather(*(publish(n) for n in range(12)))
    assert len({r.id for r in results}) == 1
    assert sorted(r.status for r in results) == ["published"] + ["replaced"] * 11
    assert len(await texts(world)) == 1


@case("key mode", "opposite orders of keys do not deadlock")
async def opposite(world: World) -> None:
    keys = [f"k{n}" for n in range(10)]
    await world.queue.publish_many([NewMessage("old", key=key) for key in keys[:5]])
    clients = [world.client() for _ in range(4)]

    async def publish(n: int) -> None:
        order = keys if n % 2 else keys[::-1]
        await clients[n % 4].publish_many(
            [NewMessage(n, key=key, on_duplicate="replace") for key in order]
        )

    await asyncio.gather(*(publish(n) for n in range(12)))
    assert len(await world.drain()) == 10


async def _replaced(world: World, mine: Caller, key: str, payload: str) -> None:
    try:
        await world.queue.publish(
            payload, key=key, on_duplicate="replace", connection=mine.connection
        )
    except DatabaseFailed as error:
        if "READ COMMITTED" not in str(error):
            raise
        raise CaseSkipped("this database's default isolation is another: refused") from None


@case("key mode", "what is replaced in the caller's transaction is undone with it")
async def undone(world: World) -> None:
    first = await world.queue.publish("first", key="r", delay=60)
    await world.queue.publish("second", key="k")
    running = await world.claim_one()
    for end in ("rollback", "commit"):
        async with await world.caller() as mine:
            for key in "rk":
                await _replaced(world, mine, key, end)
            await getattr(mine, end)()
    assert [m.text() for m in await world.drain()] == []
    await running.complete()
    assert await texts(world) == ["commit"]
    world.clock.advance(60)
    (last,) = await world.queue.claim()
    assert (last.text(), last.id) == ("commit", first.id)


@case("key mode", "the numbers of a channel stay right")
async def numbers(world: World) -> None:
    await world.queue.publish("old", key="k", channel="a", delay=60)
    await debounce(world, "new", channel="a", delay=30)
    await world.queue.publish("run", key="r", channel="a")
    running = await world.claim_one()
    await world.queue.publish("next", key="r", channel="a", on_duplicate="replace")
    stats = await world.queue.channel("a").stats()
    assert (stats.waiting, stats.scheduled, stats.leased) == (0, 2, 1)
    await running.complete()
    stats = await world.queue.channel("a").stats()
    assert (stats.waiting, stats.scheduled, stats.leased) == (1, 1, 0)


@case("key mode", "says what it needs")
async def refused(world: World) -> None:
    for wrong in (
        {"on_duplicate": "replace"},
        {"key": "k", "on_duplicate": "other"},
        {"key": "k", "on_duplicate": "debounce"},
        {"key": "k", "debounce_for": 5},
        {"key": "k", "on_duplicate": "debounce", "delay": 10, "debounce_for": 5},
    ):
        with raises(InvalidInput):
            await world.queue.publish("x", **wrong)
    assert await texts(world) == []
