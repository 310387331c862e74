"""Flows: what the ends of parents mean for those who come after them."""

from typing import Any

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, MessageCancelled
from laneway.flow import MOST_PARENTS

from .flows import NOW, claim, complete, counts


async def _one_of_each(world: World, name: str, **options: Any) -> tuple[int, AsyncMessage]:
    async with world.queue.flow(name) as flow:
        parent = flow.add("parent", **options)
        for when in ("completed", "failed", "ended"):
            flow.add(when, after=parent, when=when)
    assert flow.id is not None
    return flow.id, (await claim(world)).get("parent")  # type: ignore[return-value]


@case("flows", "when= says after which ends a node is begun; the others are skipped")
async def when(world: World) -> None:
    world.needs("flows")
    flow, parent = await _one_of_each(world, "completes")
    await complete(world, parent)
    got = await claim(world)
    assert set(got) == {"completed", "ended"}
    await complete(world, *got.values())
    assert counts(await world.queue.flows.get(flow)) == (0, 0, 0, 3, 0, 1)

    flow, _ = await _one_of_each(world, "cancelled", delay=60)
    (waiting,) = [n for n in await world.queue.flows.nodes(flow) if n.state == "waiting"]
    await world.queue.cancel([waiting.id])
    got = await claim(world)
    assert set(got) == {"failed", "ended"}
    await complete(world, *got.values())
    info = await world.queue.flows.get(flow)
    assert (info.state, counts(info)) == ("failed", (0, 0, 0, 2, 1, 1))

    flow, _ = await _one_of_each(world, "lapses", delay=5, expires_in=6)
    world.clock.advance(10)
    await world.upkeep()
    got = await claim(world)
    assert set(got) == {"failed", "ended"}
    await complete(world, *got.values())


@case("flows", "an end that decides thousands of children goes in parts, and upkeep goes on")
async def in_parts(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("in parts") as flow:
        adder, parent = flow.add("adder"), flow.add("parent")
        skipped = [flow.add("skipped", after=parent, when="failed") for _ in range(5_000)]
        begun = [flow.add(f"begun {n}", after=parent) for n in range(10)]
        flow.add("last", after=[*skipped, *begun], when="ended")
    assert flow.id is not None
    got = await claim(world)
    await complete(world, got["parent"])
    info = await world.queue.flows.get(flow.id)
    assert (info.state, info.completed) == ("running", 1)
    assert info.held >= 11, "some are left"
    # What comes to it in the middle is decided once.
    async with got["adder"].flow() as more:
        more.add("strict", after=parent.id or 0)
        more.add("both", after=[parent.id or 0, adder.id or 0], when="ended")
        more.add("none", after=parent.id or 0, when="failed")
    await complete(world, got["adder"])
    for _ in range(10):
        await world.queue.upkeep()
    assert counts(await world.queue.flows.get(flow.id)) == (1, 12, 0, 2, 0, 5_001)
    got = await claim(world)
    assert set(got) == {"strict", "both", *(f"begun {n}" for n in range(10))}
    await complete(world, *got.values())
    got = await claim(world)
    assert set(got) == {"last"}
    await complete(world, *got.values())
    assert (await world.queue.flows.get(flow.id)).state == "completed"


@case("flows", "who comes after those that are skipped is decided in the same call")
async def at_once(world: World) -> None:
    """Also where other nodes of the call lie between them and their parents."""
    world.needs("flows")
    async with world.queue.flow("at once") as flow:
        parents = [flow.add(f"parent {n}") for n in range(2)]
        skipped = flow.add("skipped", after=parents[0], when="failed")
        after_skipped = flow.add("after skipped", after=skipped)
        flow.add("last", after=after_skipped, when="ended")
        flow.add("child", after=parents[1])
    await complete(world, *(await claim(world)).values())
    assert counts(await world.queue.flows.get(flow.id or 0)) == (0, 2, 0, 2, 0, 2)
    got = await claim(world)
    assert set(got) == {"child", "last"}
    await complete(world, *got.values())


@case("flows", "with several parents: all completed, one failed, all ended")
async def several(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("several") as flow:
        parents = [flow.add(f"parent {n}") for n in range(2)]
        for when in ("completed", "failed", "ended"):
            flow.add(when, after=parents, when=when)
    got = await claim(world)
    await world.queue.cancel([parents[0].id or 0])
    await got["parent 0"].fail("no")
    await world.queue.dead_letters.discard([got["parent 0"].id])
    assert await claim(world) == {}
    await complete(world, got["parent 1"])
    got = await claim(world)
    assert set(got) == {"failed", "ended"}
    await complete(world, *got.values())
    assert (await world.queue.flows.get(flow.id or 0)).state == "failed"


@case("flows", "a dead parent holds those who wait for its completion; a redrive goes on")
async def dead_and_redriven(world: World) -> None:
    world.needs("flows")
    flow, parent = await _one_of_each(world, "dies")
    await parent.fail("no")
    got = await claim(world)
    assert set(got) == {"failed", "ended"}
    await complete(world, got["failed"], got["ended"])
    info = await world.queue.flows.wait(flow, timeout=NOW)
    assert (info.state, counts(info)) == ("dead", (1, 0, 1, 2, 0, 0))
    await world.queue.dead_letters.redrive([parent.id])
    assert (await world.queue.flows.get(flow)).state == "running"
    again = (await claim(world))["parent"]
    await again.fail("still no")
    # Who was begun at the first death is not begun again.
    assert await claim(world) == {}
    await world.queue.dead_letters.redrive([parent.id])
    await complete(world, (await claim(world))["parent"])
    got = await claim(world)
    assert set(got) == {"completed"}
    await complete(world, got["completed"])
    info = await world.queue.flows.get(flow)
    assert (info.state, counts(info)) == ("completed", (0, 0, 0, 4, 0, 0))


@case("flows", "discarding a dead parent decides those whom it held, and theirs")
async def discarded(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("discarded") as flow:
        parent = flow.add("parent", max_attempts=1)
        child = flow.add("child", after=parent)
        grandchild = flow.add("grandchild", after=[child, parent])
        flow.add("tell", after=grandchild, when="failed")
        flow.add("clean up", after=[child, grandchild], when="ended")
    await claim(world)
    await world.expire()
    assert (await world.queue.flows.get(flow.id or 0)).state == "dead"
    assert await claim(world) == {}
    await world.queue.dead_letters.discard([parent.id or 0])
    got = await claim(world)
    assert set(got) == {"tell", "clean up"}
    states = [node.state for node in await world.queue.flows.nodes(flow.id or 0)]
    assert states == ["discarded", "skipped", "skipped", "leased", "leased"]
    ending = await world.queue.wait(grandchild.id or 0, NOW)
    assert ending.outcome == "skipped"
    with raises(MessageCancelled):
        await world.queue.result(grandchild.id or 0, timeout=NOW)


@case("flows", "a lease that was lost releases nothing, however often it tries")
async def lost(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("lost") as flow:
        parents = [flow.add(f"parent {n}") for n in range(2)]
        flow.add("child", after=parents)
    old = await claim(world)
    await world.expire()
    world.clock.advance(60)
    new = await claim(world)
    for _ in range(2):
        answers = await world.queue.complete(list(old.values()))
        assert all(answer.lost for answer in answers)
    await complete(world, new["parent 0"])
    answers = await world.queue.complete([new["parent 0"]])
    assert answers[0].lost
    assert await claim(world) == {}
    await complete(world, new["parent 1"])
    assert list(await claim(world)) == ["child"]


@case("flows", "cancelling one ends what waits, and nothing more is begun")
async def cancelled(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("cancelled") as flow:
        running, dies, later = flow.add("running"), flow.add("dies"), flow.add("later", delay=60)
        flow.add("child", after=[running, dies, later])
        flow.add("tell", after=later, when="failed")
    got = await claim(world)
    await got["dies"].fail("no")
    async with got["running"].flow() as more:
        more.add("added before")
    info = await world.queue.flows.cancel(flow.id or 0)
    assert info.cancelled_at is not None
    async with got["running"].flow() as more:
        more.add("added after")
    assert await claim(world) == {}
    states = [node.state for node in await world.queue.flows.nodes(flow.id or 0)]
    assert states == ["leased", "discarded", "cancelled", "cancelled", "cancelled"]
    # A handler that ends before it learns of it wins.
    await complete(world, got["running"])
    assert await claim(world) == {}
    info = await world.queue.flows.cancel(flow.id or 0)
    assert (info.state, counts(info)) == ("cancelled", (0, 0, 0, 1, 4, 0))


@case("flows", "one that stands still says which dead letters hold it, and a redrive of it goes on")
async def stands_still(world: World) -> None:
    world.needs("flows")
    queue = world.queue
    async with queue.flow("import", channel="tenant") as flow:
        pages = [flow.add(f"page {n}", kind="page") for n in range(3)]
        merged = flow.add("merge", kind="merge", after=pages)
    async with queue.flow("other", queue="elsewhere") as other:
        other.add("alone")
    async with queue.flow("beside") as beside:
        beside.add("beside")
    assert beside.id is not None
    assert flow.id is not None and other.id is not None and merged.id is not None
    assert await queue.flows.redrive(flow.id) == 0
    first = await claim(world)
    await complete(world, first["page 1"])
    died_at = world.clock()
    for number in (0, 2):
        await first[f"page {number}"].fail("no")
    await first["beside"].fail("no")
    still = await queue.flows.list(state="dead")
    assert {one.state for one in still} == {"dead"}
    assert flow.id in [one.id for one in still] and still.looked >= 2
    elsewhere = await queue.flows.list(queue="elsewhere")
    assert {one.queue for one in elsewhere} == {"elsewhere"} and elsewhere[0].id == other.id
    assert (await queue.flows.list(limit=1)).next == beside.id
    troubled = await queue.flows.with_dead_letters(limit=10_000)
    assert [one for one in troubled if one.id in (flow.id, other.id)] == [
        await queue.flows.get(flow.id)
    ]
    assert [one.id for one in troubled] == sorted(one.id for one in troubled)
    assert await queue.flows.with_dead_letters(limit=1) == troubled[:1]
    dead = await queue.flows.dead(flow.id)
    assert [(one.id, one.kind, one.channel) for one in dead] == [
        (pages[0].id, "page", "tenant"),
        (pages[2].id, "page", "tenant"),
    ]
    assert dead[0].died_at == died_at
    assert [one.id for one in await queue.flows.dead(flow.id, limit=1)] == [pages[0].id]
    place = await queue.flows.place(merged.id)
    assert place is not None
    assert (place.flow.id, place.node.state, place.node.pending) == (flow.id, "held", 2)
    assert [(one.id, one.state) for one in place.parents] == [
        (pages[0].id, "dead"),
        (pages[1].id, "completed"),
        (pages[2].id, "dead"),
    ]
    assert place.children == []
    above = await queue.flows.place(dead[0].id)
    assert above is not None and [one.id for one in above.children] == [merged.id]
    assert await queue.flows.redrive(flow.id) == 2
    assert await queue.flows.dead(flow.id) == []
    assert (await queue.flows.get(beside.id)).state == "dead"
    assert flow.id not in [one.id for one in await queue.flows.list(state="dead")]
    await complete(world, *(await claim(world)).values())
    await complete(world, (await claim(world))["merge"])
    assert (await queue.flows.get(flow.id)).state == "completed"
    published = await queue.publish("outside of flows")
    assert published.id is not None and await queue.flows.place(published.id) is None
    with raises(InvalidOption):
        await queue.flows.list(state="late")  # type: ignore[arg-type]


@case("flows", "a node that comes after very many is listed with some of them")
async def many_parents(world: World) -> None:
    world.needs("flows")
    async with world.queue.flow("wide") as flow:
        pages = [flow.add(n) for n in range(MOST_PARENTS + 20)]
        merged = flow.add("merge", after=pages[::-1])
    assert flow.id is not None and merged.id is not None
    (last,) = await world.queue.flows.nodes(flow.id, after=merged.id - 1)
    assert list(last.parents) == [page.id for page in pages[:19:-1]]
    assert last.pending == MOST_PARENTS + 20
    place = await world.queue.flows.place(merged.id)
    assert place is not None and len(place.parents) == MOST_PARENTS + 20
