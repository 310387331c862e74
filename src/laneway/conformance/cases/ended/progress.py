"""progress: how far the holder of a message says it is."""

import inspect
from datetime import timedelta
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, LeaseLost
from laneway.model import ProgressNote

SPAN = timedelta(seconds=30)


@case("progress", "is stored when the lease is extended, and shown with the message")
async def shown(world: World) -> None:
    (id,) = await world.publish(1)
    message = await world.claim_one()
    info = await world.queue.message(id)
    assert info is not None and info.progress is None
    message.progress(0.25)
    message.progress(0.4, "page 3 of 7")
    info = await world.queue.message(id)
    assert info is not None and info.progress is None
    world.clock.advance(1)
    await message.extend()
    info = await world.queue.message(id)
    assert info is not None and info.progress is not None
    said = info.progress
    assert (said.share, said.note, said.at) == (0.4, "page 3 of 7", world.clock.now)
    (listed,) = await world.queue.messages(queue=world.name, state="leased")
    assert listed.progress == said
    message.progress(None, "nearly")
    await message.extend()
    info = await world.queue.message(id)
    assert info is not None and info.progress is not None
    assert (info.progress.share, info.progress.note) == (None, "nearly")


@case("progress", "ends with the lease: the next holder begins without it")
async def ends(world: World) -> None:
    (id,) = await world.publish(1)
    old = await world.claim_one()
    old.progress(0.9)
    await old.extend()
    await world.expire()
    world.clock.advance(3600)
    info = await world.queue.message(id)
    assert info is not None and info.progress is None
    new = await world.claim_one()
    info = await world.queue.message(id)
    assert info is not None and info.progress is None
    old.progress(0.95)
    with raises(LeaseLost):
        await old.extend()
    new.progress(0.1)
    await new.extend()
    with raises(LeaseLost):
        await old.extend()
    info = await world.queue.message(id)
    assert info is not None and info.progress is not None and info.progress.share == 0.1
    await new.complete()
    assert await world.queue.message(id) is None
    world.clock.advance(120)
    await world.upkeep()


@case("progress", "rides on the heartbeat, each with its own lease")
async def heartbeat(world: World) -> None:
    await world.publish(1, 2, 3)
    first, second, third = await world.queue.claim(3)
    database = world.queue.database
    held = [(m.id, m.fence) for m in (first, second)]
    notes = [
        ProgressNote(first.id, first.fence, 0.5, None),
        ProgressNote(second.id, second.fence, None, "half"),
        ProgressNote(third.id, third.fence - 1, 1.0, "not ours"),
    ]
    answers: Any = database.run(database.engine.leases.hold(held, SPAN, notes))
    if inspect.isawaitable(answers):  # the sync client answers at once
        answers = await answers
    assert answers == ["extended", "extended"]
    said = [await world.queue.message(m.id) for m in (first, second, third)]
    found = [(i.progress.share, i.progress.note) if i and i.progress else None for i in said]
    assert found == [(0.5, None), (None, "half"), None]


@case("progress", "that is none is refused")
async def refused(world: World) -> None:
    await world.publish(1)
    message = await world.claim_one()
    for share in (-0.1, 1.1, float("nan"), "half", True):
        with raises(InvalidOption):
            message.progress(share)  # type: ignore[arg-type]
    with raises(InvalidOption):
        message.progress(None)
    message.progress(1, "x" * 600)
    await message.extend()
    info = await world.queue.message(message.id)
    assert info is not None and info.progress is not None and info.progress.note is not None
    assert info.progress.note.startswith("x" * 400) and len(info.progress.note) <= 501
