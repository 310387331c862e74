"""Topics: one publish, a copy for each subscribed queue."""

from datetime import timedelta

from laneway.client.aio.queue import AsyncQueue
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import BacklogFull, ChannelClosed, InvalidName
from laneway.model import NewMessage
from laneway.topic import Subscription, TopicCopy


def queues_of(world: World, *names: str) -> list[AsyncQueue]:
    """Clients of further queues of this case."""
    return [world.client(name=f"{world.name} {name}") for name in names]


async def subscribed(world: World, *names: str) -> list[AsyncQueue]:
    """The same, subscribed to the topic that is called like the case's queue."""
    clients = queues_of(world, *names)
    for client in clients:
        await client.topic(world.name).subscribe()
    return clients


@case("topics", "one publish puts a copy into each subscribed queue")
async def copies(world: World) -> None:
    clients = await subscribed(world, "a", "b", "c")
    answer = await world.queue.topic(world.name).publish(
        {"n": 1}, channel="tenant", kind="k", headers={"h": 1}, priority=4, max_attempts=3
    )
    assert [(copy.queue, copy.status) for copy in answer] == [
        (c.name, "published") for c in clients
    ]
    assert len({copy.id for copy in answer}) == 3
    for client, copy in zip(clients, answer, strict=True):
        (message,) = await client.claim(10)
        assert (message.id, message.queue, message.channel) == (copy.id, client.name, "tenant")
        assert (message.json(), message.kind, message.headers) == ({"n": 1}, "k", {"h": 1})
        assert (message.priority, message.max_attempts) == (4, 3)
    assert not await world.queue.claim()


@case("topics", "nobody subscribed is said by an empty answer")
async def nobody(world: World) -> None:
    topic = world.queue.topic(world.name)
    assert list(await topic.publish(1)) == []
    assert [list(copies) for copies in await topic.publish_many([1, 2])] == [[], []]
    assert list(await topic.publish_many([])) == []
    await topic.subscribe()
    assert len(await topic.publish(1)) == 1
    assert await topic.unsubscribe()
    assert not await topic.unsubscribe()
    assert list(await topic.publish(1)) == []
    assert len(await world.drain()) == 1


@case("topics", "a subscription may give its copies a channel and a kind of their own")
async def rules(world: World) -> None:
    a, b, c = queues_of(world, "a", "b", "c")
    await a.topic(world.name).subscribe(channel="all", kind="count")
    await b.topic(world.name).subscribe(kind="")
    await c.topic(world.name).subscribe(channel="gone")
    await c.topic(world.name).subscribe()  # states the whole of it
    await world.queue.topic(world.name).publish(1, channel="tenant", kind="k")
    found = [((m := (await q.claim())[0]).channel, m.kind) for q in (a, b, c)]
    assert found == [("all", "count"), ("tenant", ""), ("tenant", "k")]
    assert await world.queue.topic(world.name).subscriptions() == [
        Subscription(world.name, a.name, "all", "count"),
        Subscription(world.name, b.name, None, ""),
        Subscription(world.name, c.name, None, None),
    ]
    everything = await world.queue.subscriptions()
    assert [s for s in everything if s.topic == world.name] == list(
        await world.queue.topic(world.name).subscriptions()
    )


@case("topics", "many messages, each with what is its own")
async def many(world: World) -> None:
    (a, b) = await subscribed(world, "a", "b")
    hour = timedelta(hours=1)
    answers = await world.queue.topic(world.name).publish_many(
        [
            "plain",
            NewMessage("late", delay=hour),
            NewMessage("other", channel="c", kind="k", priority=9, key="one"),
            NewMessage("again", channel="c", kind="k", key="one"),
            NewMessage("short", channel="d", expires_in=hour, max_attempts=1),
        ],
        channel="x",
    )
    assert [[copy.status for copy in copies] for copies in answers] == [
        ["published", "published"],
        ["published", "published"],
        ["published", "published"],
        ["existing", "existing"],
        ["published", "published"],
    ]
    assert [copy.id for copy in answers[2]] == [copy.id for copy in answers[3]]
    for client in (a, b):
        found = {m.text(): m for m in await client.claim(10)}
        assert set(found) == {"plain", "other", "short"}
        assert (found["plain"].channel, found["plain"].kind) == ("x", "")
        assert (found["other"].channel, found["other"].priority) == ("c", 9)
        assert found["short"].expires_at == world.clock.now + hour
        assert found["short"].max_attempts == 1
    world.clock.advance(3600)
    assert (await a.claim())[0].text() == "late"


@case("topics", "a delay of one message is that message's only")
async def delays(world: World) -> None:
    await subscribed(world, "a", "b")
    minute = timedelta(minutes=1)
    topic = world.queue.topic(world.name)
    await topic.publish_many([NewMessage("late", delay=minute, expires_in=2 * minute), "now"])
    (client,) = queues_of(world, "a")
    (message,) = await client.claim(10)
    assert (message.text(), message.expires_at) == ("now", None)


@case("topics", "a key holds in each queue for itself")
async def keys(world: World) -> None:
    a, b = await subscribed(world, "a", "b")
    topic = world.queue.topic(world.name)
    first = await topic.publish(1, key="k")
    await (await a.claim())[0].complete()
    second = await topic.publish(1, key="k")
    assert [copy.status for copy in second] == ["published", "existing"]
    assert second[1].id == first[1].id
    assert len(await a.claim(10)) == 1 and len(await b.claim(10)) == 1


@case("topics", "more messages than one statement takes are published together")
async def big(world: World) -> None:
    a, b = await subscribed(world, "a", "b")
    answers = await world.queue.topic(world.name).publish_many(range(1, 2_502))
    assert len(answers) == 2_501 and all(len(copies) == 2 for copies in answers)
    by_id = {copies[1].id: number for number, copies in enumerate(answers, 1)}
    found = await b.claim(10_000)
    for message in found:
        assert by_id.pop(message.id) == message.json()
    assert not by_id
    others = await a.claim(10_000)
    assert len(others) == 2_501
    await world.queue.complete([*found, *others])


@case("topics", "copies in the caller's transaction exist only if it commits")
async def in_transaction(world: World) -> None:
    (a,) = await subscribed(world, "a")
    topic = world.queue.topic(world.name)
    async with await world.caller() as mine:
        await topic.publish(1, connection=mine.connection)
        await topic.publish_many([2, 3], connection=mine.connection)
        await mine.rollback()
    assert not await a.claim()
    async with await world.caller() as mine:
        await topic.publish(1, connection=mine.connection)
        await mine.commit()
    assert len(await a.claim(10)) == 1


@case("topics", "a subscription in the caller's transaction holds inside it, and after its commit")
async def subscribe_in_transaction(world: World) -> None:
    topic = world.queue.topic(world.name)
    async with await world.caller() as mine:
        await topic.subscribe(connection=mine.connection)
        assert len(await topic.publish(1, connection=mine.connection)) == 1
        await mine.rollback()
    assert not await topic.subscriptions() and not await world.queue.claim()
    await topic.subscribe()
    async with await world.caller() as mine:
        assert await topic.unsubscribe(connection=mine.connection)
        assert list(await topic.publish(1, connection=mine.connection)) == []
        await mine.rollback()
    assert len(await topic.publish(1)) == 1


@case("topics", "a full or closed channel refuses its copy, and the others are published")
async def refused(world: World) -> None:
    a, b = await subscribed(world, "a", "b")
    await a.channel("x").limit(backlog=1)
    topic = world.queue.topic(world.name)
    with raises(BacklogFull) as caught:
        await topic.publish_many([1, 2], channel="x")
    results = caught.error.results
    assert [result.status for result in results] == ["published", "published", "full", "published"]
    assert isinstance(results[2], TopicCopy) and results[2].queue == a.name
    await b.channel("y").limit(concurrency=1)
    await b.channel("y").remove()
    with raises(ChannelClosed):
        await topic.publish(3, channel="y")
    assert [len(await q.claim(10)) for q in (a, b)] == [2, 2]


@case("topics", "a schedule can publish to a topic")
async def scheduled(world: World) -> None:
    hour = timedelta(hours=1)
    a, b = await subscribed(world, "a", "b")
    await world.queue.schedule("s", 1, every=hour, topic=world.name, channel="t")
    await world.queue.schedule("void", 1, every=hour, topic=f"{world.name} of nobody")
    world.clock.advance(3600)
    report = await world.queue.fire_schedules(queues=[world.name])
    assert (report.fired, report.put_aside) == (2, 0)
    (first,), (second,) = await a.claim(10), await b.claim(10)
    assert first.headers == second.headers and first.channel == second.channel == "t"
    assert len(await world.queue.schedules.run("s")) == 2
    assert list(await world.queue.schedules.run("void")) == []


@case("topics", "a dead copy gives its key up to the schedule's next tick")
async def dead_key(world: World) -> None:
    """Each queue's copy by itself: one that lives in another queue is not doubled."""
    dies, lives = await subscribed(world, "dies", "lives")
    await world.queue.schedule(
        "s", 1, every=timedelta(hours=1), topic=world.name, key="one at a time"
    )
    letters = []
    for _ in range(2):
        world.clock.advance(3600)
        assert (await world.queue.fire_schedules(queues=[world.name])).fired == 1
        (message,) = await dies.claim(5)
        assert message.key == "one at a time"
        await message.fail("no")
        letters.append(message.id)
    assert len(set(letters)) == 2
    ran = await world.queue.schedules.run("s")
    assert [one.status for one in ran] == ["published", "existing"]
    assert len(await lives.claim(5)) == 1


@case("topics", "bad names are refused")
async def names(world: World) -> None:
    for bad in ("", "x" * 256, "\0"):
        with raises(InvalidName):
            await world.queue.topic(bad).publish(1)
        with raises(InvalidName):
            await world.queue.topic("t").subscribe(bad)
        with raises(InvalidName):
            await world.queue.topic("t").subscribe(channel=bad)
