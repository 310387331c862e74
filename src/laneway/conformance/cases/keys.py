"""Keys: a second publish with a live key changes nothing."""

import asyncio
from datetime import timedelta
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, InvalidOption
from laneway.model import KeyScope, NewMessage, Published

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SCOPES: tuple[KeyScope, ...] = ("kind", "channel", "queue")


@case("key", "a live key answers with the message that has it, whatever the second one says")
async def existing(world: World) -> None:
    first = await world.queue.publish("first", key="k", channel="a")
    again = await world.queue.publish("second", key="k", channel="a", priority=9)
    assert again == Published(first.id, "existing") and again.existing
    assert [(m.text(), m.channel) for m in await world.drain()] == [("first", "a")]


@case("key", "a key lives while its message is leased, deferred or a dead letter")
async def lives(world: World) -> None:
    first = await world.queue.publish(1, key="k")

    async def taken() -> bool:
        return await world.queue.publish(2, key="k") == Published(first.id, "existing")

    message = await world.claim_one()
    assert await taken()
    await message.defer()
    assert await taken()
    await (await world.claim_one()).fail()
    assert await taken()


@case("key", "complete, cancel and discard free it")
async def freed(world: World) -> None:
    for end in ("complete", "cancel", "discard"):
        published = await world.queue.publish(end, key="k")
        assert published.status == "published" and published.id
        if end == "cancel":
            await world.queue.cancel([published.id])
            continue
        message = await world.claim_one()
        if end == "complete":
            await message.complete()
        else:
            await message.fail()
            assert await world.queue.dead_letters.discard([published.id]) == 1
    assert (await world.queue.publish("last", key="k")).status == "published"


@case("key", "with a window it lives on after the end, and no longer")
async def window(world: World) -> None:
    first = await world.queue.publish(1, key="k", key_window=MINUTE)
    world.clock.advance(3600)
    await (await world.claim_one()).complete()
    world.clock.advance(59)
    assert await world.queue.publish(2, key="k") == Published(first.id, "existing")
    world.clock.advance(1)
    second = await world.queue.publish(3, key="k")
    assert second.status == "published" and second.id != first.id
    assert [m.json() for m in await world.drain()] == [3]


@case("key", "upkeep clears the window and changes nothing else")
async def window_upkeep(world: World) -> None:
    await world.queue.publish(1, key="k", key_window=MINUTE)
    await (await world.claim_one()).complete()
    await world.upkeep()
    assert (await world.queue.publish(2, key="k")).existing
    world.clock.advance(60)
    await world.upkeep()
    assert not (await world.queue.publish(2, key="k")).existing


@case("key", "queues have keys of their own")
async def per_queue(world: World) -> None:
    await world.queue.publish(1, key="k")
    other = await world.queue.publish(2, key="k", queue=world.name + " other")
    assert other.status == "published"


@case("key", "a key twice in one batch publishes once")
async def in_batch(world: World) -> None:
    results = await world.queue.publish_many(
        [NewMessage(n, key=key) for n, key in enumerate(("a", "b", "a", None, "b", None))]
    )
    status = [r.status for r in results]
    assert status == ["published", "published", "existing", "published", "existing", "published"]
    assert (results[2].id, results[4].id) == (results[0].id, results[1].id)
    assert sorted(m.json() for m in await world.drain()) == [0, 1, 3, 5]


@case("key", "of many at once exactly one publishes")
async def race(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    results = await asyncio.gather(*(c.publish(1, key="k") for c in clients * 3))
    assert len({r.id for r in results}) == 1
    assert sorted(r.status for r in results) == ["existing"] * 11 + ["published"]
    assert len(await world.drain()) == 1


@case("key", "a refused message does not keep its key")
async def refused(world: World) -> None:
    channel = world.queue.channel("full")
    await channel.limit(backlog=0)
    with raises(BacklogFull):
        await world.queue.publish(1, channel="full", key="k")
    await channel.unlimited()
    assert (await world.queue.publish(2, channel="full", key="k")).status == "published"


@case("key", "a redriven message has its key again")
async def redriven(world: World) -> None:
    first = await world.queue.publish(1, key="k")
    await (await world.claim_one()).fail()
    await world.queue.dead_letters.redrive(queue=world.name)
    assert (await world.queue.publish(2, key="k")).id == first.id
    message = await world.claim_one()
    assert message.key == "k"
    await message.complete()
    assert not (await world.queue.publish(3, key="k")).existing


@case("key", "a publish that is repeated after an unknown outcome does not double")
async def repeated(world: World) -> None:
    messages = [NewMessage(n, key=f"k{n}") for n in range(10)]
    first = await world.queue.publish_many(messages[:6])
    second = await world.queue.publish_many(messages)
    assert [r.id for r in second[:6]] == [r.id for r in first]
    assert [r.existing for r in second] == [True] * 6 + [False] * 4
    assert sorted(m.json() for m in await world.drain()) == list(range(10))


def _message(channel: str, kind: str, key: str = "k", scope: KeyScope = "kind") -> NewMessage:
    return NewMessage(f"{channel} {kind}", channel, kind=kind, key=key, key_scope=scope)


@case("key", "of another channel or kind is another key")
async def own(world: World) -> None:
    places = [("a", ""), ("b", ""), ("a", "x"), ("b", "x")]
    first = [
        await world.queue.publish(n, channel=c, kind=k, key="k") for n, (c, k) in enumerate(places)
    ]
    assert [one.status for one in first] == ["published"] * 4 and len(
        {one.id for one in first}
    ) == 4
    again = await world.queue.publish_many([_message(*place) for place in places * 2])
    assert again == [Published(one.id, "existing") for one in first] * 2
    assert sorted(m.json() for m in await world.drain()) == [0, 1, 2, 3]


@case("key", "several channels and kinds with one key in a batch")
async def own_in_batch(world: World) -> None:
    places = [("a", ""), ("b", ""), ("a", "x"), ("a", ""), ("b", "")]
    results = await world.queue.publish_many([_message(*place) for place in places])
    assert [r.status for r in results] == ["published"] * 3 + ["existing"] * 2
    assert (results[3].id, results[4].id) == (results[0].id, results[1].id)


@case("key", "in the scope of a channel or a queue is one for all kinds, or all channels, in it")
async def wider(world: World) -> None:
    async def publish(channel: str, kind: str, scope: KeyScope) -> Published:
        message = _message(channel, kind, scope=scope)
        return (await world.queue.publish_many([message]))[0]

    of_a = await publish("a", "x", "channel")
    assert await publish("a", "y", "channel") == Published(of_a.id, "existing")
    of_b = await publish("b", "x", "channel")
    assert of_b.status == "published"
    of_all = await publish("a", "x", "queue")
    assert of_all.status == "published"
    assert await publish("b", "y", "queue") == Published(of_all.id, "existing")
    options: dict[str, Any] = {"key": "k", "key_scope": "queue"}
    elsewhere = await world.queue.publish(1, queue=world.name + " other", **options)
    assert elsewhere.status == "published"
    for message in await world.drain():
        await message.complete()
    assert (await publish("b", "y", "queue")).status == "published"


@case("key", "the same text in several scopes is several keys")
async def mixed(world: World) -> None:
    both = [_message("a", "x", scope=scope) for scope in SCOPES] * 2
    results = await world.queue.publish_many(both)
    assert [r.status for r in results] == ["published"] * 3 + ["existing"] * 3
    assert [r.id for r in results[3:]] == [r.id for r in results[:3]]
    messages = await world.drain()
    assert [message.key for message in messages] == ["k"] * 3
    await messages[0].complete()
    assert (await world.queue.publish_many(both[:3]))[0].id != messages[0].id


@case("key", "names that read alike when joined are different keys")
async def alike(world: World) -> None:
    messages = [
        *(_message("a", "bc"), _message("ab", "c"), _message("abc", ""), _message("1:a", "bc")),
        *(_message("a", "b", "ck"), _message("a", "b", "c:k"), _message("a", "b:c", "k")),
        *(_message("a|b", "c"), _message("a", "b|c"), _message("a/b", "c"), _message("a", "b/c")),
        *(_message("queue", ""), _message("channel a", ""), _message("5:queue", "")),
        *(_message("a", "", "k", "channel"), _message("channel a", "", "k", "channel")),
        *(_message("a", "", "k", "queue"), _message("\x1fa", "\x1f"), _message("\x1f", "a\x1f")),
    ]
    results = await world.queue.publish_many(messages)
    assert {r.status for r in results} == {"published"}
    again = await world.queue.publish_many(messages)
    assert again == [Published(r.id, "existing") for r in results]


@case("key", "is shown as it was given, in whatever scope")
async def shown(world: World) -> None:
    long = "é" * 127
    results = await world.queue.publish_many([_message("a", "x", long, scope) for scope in SCOPES])
    ids = [r.id or 0 for r in results]
    assert [m.key for m in await world.queue.messages(queue=world.name, channel="a")] == [long] * 3
    found = [await world.queue.message(id) for id in ids]
    assert [message.key for message in found if message] == [long] * 3
    claimed = await world.queue.claim(3)
    assert [message.key for message in claimed] == [long] * 3
    leased = [await world.queue.message(id) for id in ids]
    assert [message.key for message in leased if message] == [long] * 3
    await world.queue.fail(claimed)
    letters = await world.queue.dead_letters.list(queue=world.name)
    assert [letter.key for letter in letters] == [long] * 3
    dead = [await world.queue.message(id) for id in ids]
    assert [message.key for message in dead if message] == [long] * 3


@case("key", "in a window holds in its scope only")
async def window_scope(world: World) -> None:
    options: dict[str, Any] = {"key": "k", "key_window": MINUTE}
    first = await world.queue.publish(1, channel="a", **options)
    await (await world.claim_one()).complete()
    assert await world.queue.publish(1, channel="a", **options) == Published(first.id, "existing")
    assert (await world.queue.publish(1, channel="b", **options)).status == "published"


@case("key", "of many at once exactly one publishes in each channel, and one in the queue")
async def race_of_channels(world: World) -> None:
    clients = [world.client() for _ in range(4)]
    kept = [_message(channel, "x") for channel in "ab"]
    wide = [_message(channel, "x", "wide", "queue") for channel in "ab"]
    calls = [
        client.publish_many(order)
        for number, client in enumerate(clients * 3)
        for order in ((kept + wide)[:: 1 if number % 2 else -1],)
    ]
    answers = [answer for results in await asyncio.gather(*calls) for answer in results]
    assert [answer.status for answer in answers].count("published") == 3
    assert len({answer.id for answer in answers}) == 3 == len(await world.drain())


@case("key", "of another channel, undone in the caller's transaction, is free again")
async def undone_elsewhere(world: World) -> None:
    await world.queue.publish("kept", channel="a", key="k")
    for end in ("rollback", "commit"):
        async with await world.caller() as mine:
            published = await world.queue.publish(
                end, channel="b", key="k", connection=mine.connection
            )
            assert published.status == "published"
            again = await world.queue.publish(
                "no", channel="b", key="k", connection=mine.connection
            )
            assert again.existing
            await getattr(mine, end)()
    assert sorted(m.text() for m in await world.drain()) == ["commit", "kept"]


@case("key", "copies of a topic hold it where they are")
async def of_copies(world: World) -> None:
    topic = world.queue.topic(world.name)
    await topic.subscribe(world.name, channel="c", kind="copy")
    await world.queue.publish("own", channel="c", kind="copy", key="k")
    await world.queue.publish("other", channel="b", kind="x", key="k")
    assert [copy.status for copy in await topic.publish(1, channel="b", kind="x", key="k")] == [
        "existing"
    ]
    (copy,) = await topic.publish(1, channel="b", kind="x", key="k", key_scope="channel")
    assert copy.status == "published"


@case("key", "of a schedule holds among its messages, or in the scope that it names")
async def of_schedules(world: World) -> None:
    await world.queue.publish(1, channel="b", key="k")
    mine = await world.queue.schedule("s", 2, every=HOUR, channel="a", key="k")
    assert (mine.key, mine.key_scope) == ("k", "kind")
    (ran,) = await world.queue.schedules.run("s")
    assert ran.status == "published"
    (again,) = await world.queue.schedules.run("s")
    assert again.existing and again.id == ran.id
    wide = await world.queue.publish(3, channel="b", key="k", key_scope="queue")
    edited = await world.queue.schedule("s", 2, every=HOUR, channel="a", key="k", key_scope="queue")
    assert edited.key_scope == "queue" and edited.revision > mine.revision
    (now,) = await world.queue.schedules.run("s")
    assert now.existing and now.id == wide.id


@case("key", "of a topic's schedule is taken from a dead letter where the subscriber put it")
async def of_dead_copies(world: World) -> None:
    await world.queue.topic(world.name).subscribe(world.name, channel="c", kind="copy")
    await world.queue.schedule("s", 2, every=HOUR, topic=world.name, key="k")
    for _ in range(2):
        (ran,) = await world.queue.schedules.run("s")
        assert ran.status == "published"
        await (await world.claim_one()).fail("no")


@case("key", "a scope without a key, and one that is none, are refused")
async def no_scope(world: World) -> None:
    with raises(InvalidOption):
        await world.queue.publish(1, key_scope="queue")
    with raises(InvalidOption):
        await world.queue.publish(1, key="k", key_scope="tenant")  # type: ignore[arg-type]
