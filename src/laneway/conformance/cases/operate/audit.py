"""The audit: what operators did, in the transaction in which they did it."""

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, ScheduleMissing
from laneway.operations import AuditNote


@case("audit", "a verb and its row are one: who, from where, what, to what and to how many")
async def written(world: World) -> None:
    target = {"queue": world.name, "channel": "café", "limits": {"concurrency": None}}
    note = AuditNote("ann ☃", "cli", "pause_channel", target)
    before = world.clock.now
    await world.queue.audited(note, lambda _: 7).channel("café").pause()
    (entry,) = await world.queue.audit(limit=1)
    assert (entry.actor, entry.source, entry.action) == ("ann ☃", "cli", "pause_channel")
    assert (entry.target, entry.affected, entry.at) == (target, 7, before)
    assert (await world.queue.channel("café").policy()).paused


@case("audit", "what was refused left nothing, neither itself nor a row")
async def refused(world: World) -> None:
    last = [entry.id for entry in await world.queue.audit(limit=1)]
    note = AuditNote("ann", "api", "limit", {})
    with raises(InvalidOption):
        await world.queue.audited(note).channel("a").limit(burst=5)
    with raises(ScheduleMissing):
        await world.queue.audited(note, _count).schedules.pause("nothing of that name")
    assert [entry.id for entry in await world.queue.audit(limit=1)] == last


def _count(answer: object) -> int:
    return 1 if answer else 0


@case("audit", "pages come newest first, each before the last one's id")
async def pages(world: World) -> None:
    for number in range(5):
        note = AuditNote("ann", "api", f"act {number}", {"queue": world.name})
        await world.queue.audited(note).channel("a").pause()
    first = await world.queue.audit(limit=3)
    rest = await world.queue.audit(limit=2, before=first[-1].id)
    mine = [entry for entry in [*first, *rest] if entry.target == {"queue": world.name}]
    assert [entry.action for entry in mine] == [f"act {number}" for number in (4, 3, 2, 1, 0)]


@case("audit", "publishing and cancelling write their rows too")
async def messages(world: World) -> None:
    note = AuditNote("ann", "dashboard", "publish", {})
    published = await world.queue.audited(note, _count).publish(1)
    cancelling = world.queue.audited(note._replace(action="cancel"), len)
    assert published.id is not None
    assert [x.status for x in await cancelling.cancel([published.id])] == ["cancelled"]
    cancel, publish = await world.queue.audit(limit=2)
    assert (cancel.action, cancel.affected) == ("cancel", 1)
    assert (publish.action, publish.affected) == ("publish", 1)


@case("audit", "upkeep deletes what is older than audit_days")
async def kept(world: World) -> None:
    note = AuditNote("ann", "api", "pause_channel", {"queue": world.name})
    await world.queue.audited(note).channel("a").pause()
    async with world.configured(audit_days=2):
        assert (await world.queue.settings()).audit_days == 2
        world.clock.advance(86_400)
        await world.queue.audited(note._replace(action="resume_channel")).channel("a").resume()
        await world.upkeep()
        assert await _mine(world) == ["resume_channel", "pause_channel"]
        world.clock.advance(86_401)
        await world.upkeep()
        assert await _mine(world) == ["resume_channel"]


async def _mine(world: World) -> list[str]:
    entries = await world.queue.audit(limit=1000)
    return [entry.action for entry in entries if entry.target.get("queue") == world.name]
