"""cancel, and messages past their time."""

from datetime import timedelta

from laneway.conformance.registry import case
from laneway.conformance.world import World
from laneway.model import Cancelled, ClaimStatus


@case("cancel", "ends waiting and scheduled messages, and says what it could not end")
async def cancel(world: World) -> None:
    waiting, leased = await world.publish(1, 2)
    scheduled = (await world.queue.publish(3, delay=timedelta(hours=1))).id
    assert scheduled
    first = await world.claim_one()
    await first.give_back()
    (message,) = await world.queue.claim()
    assert message.id == waiting
    await message.fail()
    (held,) = await world.queue.claim()
    assert held.id == leased
    (extra,) = await world.publish(4)
    answers = await world.queue.cancel([extra, leased, waiting, scheduled, 2**60])
    assert answers == [
        Cancelled(extra, "cancelled"),
        Cancelled(leased, "leased"),
        Cancelled(waiting, "dead"),
        Cancelled(scheduled, "cancelled"),
        Cancelled(2**60, "absent"),
    ]
    await held.complete()
    world.clock.advance(7200)
    assert not await world.queue.claim()


@case("cancel", "what is left starts in its order")
async def rest(world: World) -> None:
    ids = await world.fill("a", 10)
    await world.claim_one()
    await world.queue.cancel(ids[2:6])
    assert [m.id for m in await world.drain(3)] == [ids[1], *ids[6:]]


@case("cancel", "leaves one history row, and the message does not come back")
async def history(world: World) -> None:
    (id,) = await world.publish(1)
    await world.queue.cancel([id])
    assert [a.status for a in await world.queue.cancel([id])] == ["absent"]
    (entry,) = await world.queue.history(id)
    assert (entry.outcome, entry.terminal, entry.attempt) == ("cancelled", True, 0)


@case("cancel", "a channel that was emptied by it is empty, and goes on")
async def emptied(world: World) -> None:
    ids = await world.fill("a", 3)
    await world.queue.cancel(ids)
    assert (await world.claim()).status is ClaimStatus.EMPTY
    (again,) = await world.publish(1, channel="a")
    assert (await world.claim_one()).id == again
    stats = await world.queue.channel("a").stats()
    assert (stats.waiting, stats.leased) == (0, 1)


@case("lapse", "a message past its time is never claimed")
async def never_claimed(world: World) -> None:
    await world.publish("short", expires_in=timedelta(seconds=5))
    (kept,) = await world.publish("long", expires_in=timedelta(seconds=50))
    world.clock.advance(5)
    assert [m.id for m in await world.drain()] == [kept]


@case("lapse", "upkeep ends it with one history row, and frees its key")
async def ended(world: World) -> None:
    (id,) = await world.publish(1, expires_in=timedelta(seconds=5), key="k")
    world.clock.advance(5)
    report = await world.queue.upkeep()
    assert report.lapsed >= 1
    (entry,) = await world.queue.history(id)
    assert (entry.outcome, entry.terminal) == ("lapsed", True)
    assert (await world.queue.publish(2, key="k")).status == "published"
    (message,) = await world.drain()
    assert message.json() == 2


@case("lapse", "a lease that began in time is left to its holder")
async def leased(world: World) -> None:
    await world.publish(1, expires_in=timedelta(seconds=5))
    message = await world.claim_one()
    world.clock.advance(10)
    await world.upkeep()
    await message.complete()
    assert [e.outcome for e in await world.queue.history(message.id)] == ["completed"]


@case("lapse", "a message that came back too late lapses")
async def came_back(world: World) -> None:
    await world.publish(1, expires_in=timedelta(seconds=5))
    message = await world.claim_one()
    await message.defer(timedelta(seconds=10))
    world.clock.advance(20)
    assert not await world.queue.claim()
    await world.upkeep()
    outcomes = [e.outcome for e in await world.queue.history(message.id)]
    assert outcomes == ["deferred", "lapsed"]


@case("lapse", "those that lapsed hide nobody else's work")
async def behind(world: World) -> None:
    await world.fill("a", 30, expires_in=timedelta(seconds=5))
    ids = await world.fill("a", 3)
    world.clock.advance(6)
    found = [m.id for m in await world.drain(2)]
    await world.upkeep()
    found += [m.id for m in await world.drain(2)]
    assert found == ids


@case("lapse", "a redriven dead letter does not lapse by its old time")
async def redriven(world: World) -> None:
    await world.publish(1, expires_in=timedelta(seconds=5))
    message = await world.claim_one()
    await message.fail()
    world.clock.advance(10)
    await world.queue.dead_letters.redrive([message.id])
    assert (await world.claim_one()).expires_at is None


@case("cancel", "channels that were emptied hide nobody behind them")
async def hide_nobody(world: World) -> None:
    names = [f"x{number}" for number in range(30)]
    ids = [id for name in names for id in await world.fill(name, 12)]
    world.clock.advance(0.01)
    started = {message.id for message in await world.claim(330)}
    world.clock.advance(0.01)
    waiting = await world.fill("y", 8)
    world.clock.advance(0.01)
    await world.queue.cancel([id for id in ids if id not in started])
    world.clock.advance(0.01)
    assert [message.id for _ in waiting for message in await world.claim()] == waiting


@case("cancel", "of running work is a request to the holder of the lease")
async def requested(world: World) -> None:
    (running,) = await world.publish({"n": 1}, channel="a")
    message = await world.claim_one()
    (dead,) = await world.publish({"n": 2}, channel="b")
    await (await world.claim_one()).fail("hopeless")
    (waiting,) = await world.publish({"n": 3}, channel="c")
    ids = [2**60, running, dead, waiting, running]
    results = await world.queue.cancel(ids, running=True)
    assert [result.id for result in results] == ids
    states = [result.status for result in results]
    assert states == ["absent", "requested", "dead", "cancelled", "requested"]
    await message.extend()  # the lease is still its holder's
    again = await world.queue.cancel([message.id], running=True)
    assert again[0].status == "requested", "asked twice"


@case("cancel", "a request changes nothing for a holder that ends first")
async def too_late(world: World) -> None:
    (id,) = await world.publish({"n": 1})
    message = await world.claim_one()
    await world.queue.cancel([id], running=True)
    await message.complete()
    assert [e.outcome for e in await world.queue.history(id)] == ["completed"]
    await world.upkeep()
    assert (await world.queue.cancel([id], running=True))[0].status == "absent"


@case("cancel", "a request is for one lease, not for the next holder's")
async def fenced(world: World) -> None:
    (id,) = await world.publish({"n": 1})
    await world.claim_one()
    await world.queue.cancel([id], running=True)
    await world.expire()
    world.clock.advance(60)
    message = await world.claim_one()
    await message.complete()
    assert [e.outcome for e in await world.queue.history(id)] == ["expired", "completed"]


@case("cancel", "without running=True a leased message stays as it is")
async def leased_stays(world: World) -> None:
    (id,) = await world.publish({"n": 1})
    await world.claim_one()
    assert (await world.queue.cancel([id]))[0].status == "leased"
