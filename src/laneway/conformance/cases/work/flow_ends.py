"""Flows: what the ends of parents mean for those who come after them."""

from typing import Any

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import MessageCancelled

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

    flow, _ = await _one_of_each(world, "lapses", delay=60, expires_in=5)
    world.clock.advance(10)
    await world.upkeep()
    got = await claim(world)
    assert set(got) == {"failed", "ended"}
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
