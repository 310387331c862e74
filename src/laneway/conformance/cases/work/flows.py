"""Flows: messages that are begun when others have ended."""

from datetime import timedelta

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import (
    BacklogFull,
    FlowMissing,
    InvalidCall,
    InvalidOption,
    LeaseLost,
    NotEnded,
    ResultMissing,
)
from laneway.flow import FlowInfo
from laneway.model import NewMessage

NOW = timedelta(0)


async def claim(world: World, limit: int = 100) -> dict[str, AsyncMessage]:
    """What can be begun now, by payload."""
    world.clock.advance(0.001)
    return {message.text(): message for message in await world.claim(limit)}


async def complete(world: World, *messages: AsyncMessage) -> None:
    answers = await world.queue.complete(list(messages))
    assert not any(answer.lost for answer in answers)


def counts(flow: FlowInfo) -> tuple[int, ...]:
    return flow.held, flow.live, flow.dead, flow.completed, flow.failed, flow.skipped


@case("flows", "a node is begun when all that it comes after have completed, and not before")
async def diamond(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("import:1", channel="tenant") as flow:
        split = flow.add("split")
        pages = [flow.add(f"page {n}", after=split, priority=n) for n in range(3)]
        merged = flow.add("merge", after=pages, channel="other")
        flow.add("tell", after=[merged, *pages])
        assert flow.id is None
        with raises(InvalidCall):
            merged.id  # noqa: B018
    assert flow.id is not None and not flow.existing and merged.id > 0
    first = await claim(world)
    assert list(first) == ["split"]
    assert (first["split"].id, first["split"].channel) == (split.id, "tenant")
    await complete(world, first["split"])
    second = await claim(world)
    assert list(second) == ["page 2", "page 1", "page 0"]
    await complete(world, second["page 1"])
    assert await claim(world) == {}
    # Two parents of one child in one call.
    await complete(world, second["page 2"], second["page 0"])
    third = await claim(world)
    assert list(third) == ["merge"]
    assert (third["merge"].id, third["merge"].channel) == (merged.id, "other")
    assert (await world.queue.flows.get(flow.id)).state == "running"
    await complete(world, third["merge"])
    await complete(world, (await claim(world))["tell"])
    ended = await world.queue.flows.get(flow.id)
    assert (ended.state, ended.nodes, counts(ended)) == ("completed", 6, (0, 0, 0, 6, 0, 0))


@case("flows", "belong to the caller's transaction, and so do the messages that an end releases")
async def in_transaction(world: World) -> None:
    world.needs("flows")
    async with await world.caller() as mine:
        async with world.queue.flow("a", connection=mine.connection) as undone:
            undone.add("never")
        await mine.rollback()
    assert undone.id is not None
    with raises(FlowMissing):
        await world.queue.flows.get(undone.id)
    with raises(ZeroDivisionError):
        async with world.queue.flow("a") as broken:
            broken.add(1 // len([]))
    assert broken.id is None
    async with await world.caller() as mine:
        async with world.queue.flow("a", connection=mine.connection) as flow:
            flow.add("child", after=flow.add("parent"))
        await mine.commit()
    assert not flow.existing
    parent = (await claim(world))["parent"]
    async with await world.caller() as mine:
        await parent.complete(connection=mine.connection)
        await mine.rollback()
    assert await claim(world) == {}
    async with await world.caller() as mine:
        await parent.complete(connection=mine.connection)
        await mine.commit()
    assert list(await claim(world)) == ["child"]


@case("flows", "a name is taken until its flow has ended")
async def names(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("nightly") as first:
        first.add(1)
    async with world.queue.flow("nightly") as second:
        node = second.add(2)
    assert (second.existing, second.id) == (True, first.id)
    with raises(InvalidCall):
        node.id  # noqa: B018
    async with world.queue.flow("nightly", queue=f"{world.name} 2") as elsewhere:
        elsewhere.add(3)
    assert not elsewhere.existing
    got = await claim(world)
    assert list(got) == ["1"]
    await complete(world, got["1"])
    async with world.queue.flow("nightly") as third:
        third.add(4)
    assert not third.existing and third.id != first.id
    async with world.queue.flow("nothing") as empty:
        pass
    assert empty.id is None


@case("flows", "a handler adds to its own flow; what it added is begun when it completes")
async def added(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("added", channel="tenant") as flow:
        split = flow.add("split")
        static = flow.add("static", after=split)
    message = (await claim(world))["split"]
    async with message.flow() as more:
        pages = [more.add(f"page {n}") for n in range(2)]
        merged = more.add("merge", after=pages)
        more.add("last", after=[merged, static.id or 0])
        more.add("not needed", after=split.id or 0, when="failed")
    assert merged.id is not None
    with raises(NotEnded):
        await world.queue.wait(merged.id, NOW)
    assert await claim(world) == {}
    assert (await world.queue.flows.get(flow.id or 0)).nodes == 2
    async with message.flow() as more:
        more.add("page 2", after=pages[0].id or 0)
    await complete(world, message)
    got = await claim(world)
    assert set(got) == {"static", "page 0", "page 1"}
    assert got["page 0"].channel == "tenant"
    await complete(world, *got.values())
    got = await claim(world)
    assert set(got) == {"merge", "page 2"}
    await complete(world, *got.values())
    await complete(world, (await claim(world))["last"])
    info = await world.queue.flows.get(flow.id or 0)
    assert (info.state, counts(info)) == ("completed", (0, 0, 0, 7, 0, 1))


@case("flows", "an attempt that is repeated adds its nodes once")
async def added_again(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("again") as flow:
        flow.add("split")
    first = (await claim(world))["split"]
    async with first.flow() as more:
        more.add("of the first attempt")
    await world.expire()
    world.clock.advance(60)
    second = (await claim(world))["split"]
    with raises(LeaseLost):
        async with first.flow() as late:
            late.add("of a lost lease")
    async with second.flow() as more:
        more.add("of the second attempt")
    await second.defer()
    third = (await claim(world))["split"]
    await complete(world, third)
    assert await claim(world) == {}
    assert counts(await world.queue.flows.get(flow.id or 0)) == (0, 0, 0, 1, 0, 0)

    async with world.queue.flow("once more") as flow:
        flow.add("split")
    for attempt in range(3):
        message = (await claim(world))["split"]
        async with message.flow() as more:
            more.add(f"attempt {attempt}")
        if attempt < 2:
            await message.defer()
    await complete(world, message)
    assert list(await claim(world)) == ["attempt 2"]
    published = await world.queue.publish("no flow")
    alone = (await claim(world))["no flow"]
    assert alone.id == published.id
    with raises(FlowMissing):
        async with alone.flow() as none:
            none.add(1)


@case("flows", "what was added in a transaction that rolled back was not added")
async def added_in_transaction(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("tx") as flow:
        flow.add("split")
    message = (await claim(world))["split"]
    async with await world.caller() as mine:
        async with message.flow(connection=mine.connection) as more:
            more.add("undone")
        await mine.rollback()
    async with await world.caller() as mine:
        async with message.flow(connection=mine.connection) as more:
            more.add("done")
        await message.complete(connection=mine.connection)
        await mine.commit()
    assert list(await claim(world)) == ["done"]
    assert (await world.queue.flows.get(flow.id or 0)).nodes == 2


@case("flows", "the results of parents are at hand, in the order of after=")
async def results(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("results", keep_result=3600) as flow:
        parents = [flow.add(f"parent {n}", kind=f"kind {n}") for n in range(3)]
        flow.add("child", after=[parents[2], parents[0], parents[1]], when="ended")
    got = await claim(world)
    await got["parent 0"].complete(result=10)
    await got["parent 1"].fail("no")
    await got["parent 2"].complete(result={"n": 30})
    child = (await claim(world))["child"]
    before = await child.parents()
    assert [(p.id, p.kind, p.state) for p in before] == [
        (parents[2].id, "kind 2", "completed"),
        (parents[0].id, "kind 0", "completed"),
        (parents[1].id, "kind 1", "dead"),
    ]
    assert before[0].result() == {"n": 30} and before[1].result(int) == 10
    with raises(ResultMissing):
        before[2].result()
    assert await got["parent 0"].parents() == []


@case("flows", "are listed, shown and waited for, and forgotten a while after their end")
async def looked_at(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("old", keep=60) as old:
        old.add("x")
    async with world.queue.flow("new") as new:
        new.add("child", after=new.add("parent", kind="k"))
    listed = await world.queue.flows.list(queue=world.name)
    assert [(flow.id, flow.name) for flow in listed] == [(new.id, "new"), (old.id, "old")]
    page = await world.queue.flows.list(queue=world.name, limit=1, before=new.id)
    assert [flow.id for flow in page] == [old.id]
    nodes = await world.queue.flows.nodes(new.id or 0)
    assert [(n.kind, n.state, list(n.parents)) for n in nodes] == [
        ("k", "waiting", []),
        ("", "held", [nodes[0].id]),
    ]
    rest = await world.queue.flows.nodes(new.id or 0, after=nodes[0].id, limit=1)
    assert [node.id for node in rest] == [nodes[1].id]
    with raises(NotEnded):
        await world.queue.flows.wait(old.id or 0, timeout=NOW)
    got = await claim(world)
    await complete(world, got["x"])
    assert (await old.wait(timeout=NOW)).state == "completed"
    await world.upkeep()
    ended = await world.queue.flows.get(old.id or 0)
    assert ended.ended_at == world.clock.now
    world.clock.advance(61)
    await world.upkeep()
    with raises(FlowMissing):
        await world.queue.flows.get(old.id or 0)
    assert await world.queue.flows.nodes(old.id or 0) == []
    assert (await world.queue.flows.get(new.id or 0)).state == "running"


@case("flows", "delays, times to live and limits of channels hold for those released later")
async def options(world: World) -> None:
    world.needs("flows")
    await world.queue.channel("one").limit(concurrency=1)
    async with world.queue.flow("options") as flow:
        parent = flow.add("parent")
        flow.add("late", after=parent, delay=30)
        flow.add("lapses", after=parent, delay=10, expires_in=20)
        for n in range(2):
            flow.add(f"one {n}", after=parent, channel="one", max_attempts=3, headers={"n": n})
    world.clock.advance(100)
    got = await claim(world)
    await complete(world, got["parent"])
    got = await claim(world)
    assert list(got) == ["one 0"]
    assert (got["one 0"].max_attempts, got["one 0"].headers) == (3, {"n": 0})
    await complete(world, got["one 0"])
    assert list(await claim(world)) == ["one 1"]
    world.clock.advance(31)
    await world.upkeep()
    assert list(await claim(world)) == ["late"]


@case("flows", "a channel that takes no more refuses the whole flow, but never a release")
async def refused(world: World) -> None:
    world.needs("flows")
    await world.queue.channel("small").limit(backlog=1)
    with raises(BacklogFull):
        async with world.queue.flow("large") as flow:
            flow.add(0, channel="free")
            for n in (1, 2):
                flow.add(n, channel="small")
    assert flow.id is None
    assert await claim(world) == {}
    async with world.queue.flow("large") as flow:
        parent = flow.add("parent", channel="small")
        for n in (1, 2):
            flow.add(n, channel="small", after=parent)
    assert not flow.existing
    await complete(world, (await claim(world))["parent"])
    assert set(await claim(world)) == {"1", "2"}


@case("flows", "what makes no sense is refused before anything is written")
async def nonsense(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("one") as one:
        node = one.add(1)
        with raises(InvalidOption):
            one.add(2, key="k")  # type: ignore[call-overload]
        with raises(InvalidOption):
            one.add(2, when="ended")
        with raises(InvalidOption):
            one.add(2, after=node, when="sometimes")  # type: ignore[call-overload]
        with raises(InvalidOption):
            one.add(2, after=7)
        with raises(InvalidOption):
            one.add(2, after="x")  # type: ignore[arg-type]
        with raises(InvalidOption):
            one.add(2, sooner=True)  # type: ignore[call-overload]
        with raises(InvalidCall):
            one.add(NewMessage(1), priority=1)  # type: ignore[call-overload]
        with raises(InvalidCall):
            one.add("no task", 2)  # type: ignore[call-overload]
        async with world.queue.flow("two") as two:
            with raises(InvalidOption):
                two.add(2, after=node)
    with raises(InvalidCall):
        one.add(3)
    assert list(await claim(world)) == ["1"]


@case("flows", "a node that was released is found by claims of its kind")
async def by_kind(world: World) -> None:
    world.needs("flows")
    world.needs("claims by kind")
    async with world.queue.flow("kinds") as flow:
        parent = flow.add("parent", kind="first")
        flow.add("child", kind="second", after=parent)
    assert list(await world.queue.claim(10, kinds=["second"])) == []
    (first,) = await world.queue.claim(10, kinds=["first"])
    await complete(world, first)
    world.clock.advance(0.001)
    assert list(await world.queue.claim(10, kinds=["first"])) == []
    (second,) = await world.queue.claim(10, kinds=["second"])
    assert second.text() == "child"
