"""Schedules: every tick once, whatever happens around it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from laneway.client.aio.message import AsyncMessage
from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.errors import InvalidOption, InvalidSchedule, InvalidTime, ScheduleMissing
from laneway.schedule import SCHEDULE_HEADER, TICK_HEADER, FireReport

HOUR = timedelta(hours=1)


def tick_of(message: AsyncMessage) -> datetime:
    return datetime.fromisoformat(message.headers[TICK_HEADER])


async def fire(world: World, **options: Any) -> FireReport:
    """Only this case's schedules: others' clocks stand elsewhere."""
    return await world.queue.fire_schedules(queues=[world.name], **options)


async def fire_all(world: World) -> int:
    """Fires until nothing more is due, and answers how many messages that made."""
    fired = 0
    for _ in range(100):
        report = await fire(world)
        fired += report.fired
        if report.look_again != timedelta(0):
            return fired
    raise AssertionError("firing never ends")


async def ticks(world: World) -> list[datetime]:
    return [tick_of(message) for message in await world.drain()]


@case("schedules", "an interval fires once a period, from its start on")
async def interval(world: World) -> None:
    begin = world.clock.now
    made = await world.queue.schedule("hourly", {"n": 1}, every=HOUR, channel="a", kind="k")
    assert made.next_at == begin + HOUR
    assert await fire(world) == FireReport(look_again=HOUR)
    world.clock.advance(3600)
    report = await fire(world)
    assert (report.fired, report.put_aside, report.look_again) == (1, 0, HOUR)
    assert (await fire(world)).fired == 0
    message = await world.claim_one()
    assert (message.json(), message.channel, message.kind) == ({"n": 1}, "a", "k")
    assert message.headers[SCHEDULE_HEADER] == "hourly"
    assert tick_of(message) == begin + HOUR
    now = await world.queue.schedules.get("hourly")
    assert (now.last_at, now.next_at, now.fired) == (begin + HOUR, begin + 2 * HOUR, 1)


@case("schedules", "a start in the future is the first tick, one in the past is counted from")
async def start(world: World) -> None:
    now = world.clock.now
    later = await world.queue.schedule("later", 1, every=HOUR, start=now + timedelta(minutes=7))
    assert later.next_at == now + timedelta(minutes=7)
    before = await world.queue.schedule("before", 1, every=HOUR, start=now - timedelta(minutes=7))
    assert before.next_at == now + timedelta(minutes=53)
    world.clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    late = await world.queue.schedule(
        "cron", 1, cron="0 3 * * *", start=datetime(2027, 2, 1, 12, tzinfo=UTC)
    )
    assert late.next_at == datetime(2027, 2, 2, 3, tzinfo=UTC)


@case("schedules", "cron ticks in its zone, over both changes of the clocks")
async def zones(world: World) -> None:
    world.clock.now = datetime(2027, 3, 26, 12, tzinfo=UTC)
    await world.queue.schedule("r", 1, cron="30 2 * * *", zone="Europe/Zurich", catch_up="all")
    world.clock.now = datetime(2027, 3, 30, 12, tzinfo=UTC)
    await fire_all(world)
    assert [t.isoformat() for t in await ticks(world)] == [
        "2027-03-27T01:30:00+00:00",
        "2027-03-28T01:00:00+00:00",  # there is no half past two: as soon as the clocks have moved
        "2027-03-29T00:30:00+00:00",
        "2027-03-30T00:30:00+00:00",
    ]
    world.clock.now = datetime(2027, 10, 30, 12, tzinfo=UTC)
    await world.queue.schedules.pause("r")
    await world.queue.schedules.resume("r")
    world.clock.now = datetime(2027, 11, 1, 12, tzinfo=UTC)
    await fire_all(world)
    assert [t.isoformat() for t in await ticks(world)] == [
        "2027-10-31T00:30:00+00:00",  # half past two comes twice: the first time only
        "2027-11-01T01:30:00+00:00",
    ]


@case("schedules", "between two equal hours, a time that was there already does not come again")
async def fold(world: World) -> None:
    world.clock.now = datetime(2027, 10, 31, 1, 10, tzinfo=UTC)  # the second ten past two
    made = await world.queue.schedule("r", 1, cron="30 2 * * *", zone="Europe/Zurich")
    assert made.next_at == datetime(2027, 11, 1, 1, 30, tzinfo=UTC)


@case("schedules", "every hour is every real hour, over both changes of the clocks")
async def real_hours(world: World) -> None:
    for begin in (datetime(2027, 3, 27, 23, tzinfo=UTC), datetime(2027, 10, 30, 22, tzinfo=UTC)):
        world.clock.now = begin
        name = f"from {begin}"
        await world.queue.schedule(name, 1, cron="0 * * * *", zone="Europe/Zurich", catch_up="all")
        world.clock.advance(6 * 3600)
        await fire_all(world)
        await world.queue.schedules.remove(name)
        assert await ticks(world) == [begin + n * HOUR for n in range(1, 7)]


@case("schedules", "leap days come every four years")
async def leap_day(world: World) -> None:
    world.clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    await world.queue.schedule("leap", 1, cron="0 12 29 2 *", catch_up="all")
    world.clock.now = datetime(2033, 1, 1, tzinfo=UTC)
    assert await fire_all(world) == 2
    assert [t.year for t in await ticks(world)] == [2028, 2032]


@case("schedules", "after a week down: all fires each missed tick, in order")
async def catch_up_all(world: World) -> None:
    begin = world.clock.now
    await world.queue.schedule("m", 1, every=timedelta(minutes=1), catch_up="all")
    world.clock.advance(7 * 86_400)
    assert await fire_all(world) == 7 * 1440
    found = await world.queue.claim(10)
    assert [tick_of(m) for m in found] == [
        begin + timedelta(minutes=n) for n in range(1, len(found) + 1)
    ]


@case("schedules", "after a week down: once fires the last missed tick")
async def catch_up_once(world: World) -> None:
    begin = world.clock.now = world.clock.now.replace(microsecond=0)
    await world.queue.schedule("m", 1, every=timedelta(minutes=1), catch_up="once")
    await world.queue.schedule("c", 1, cron="*/5 * * * *", catch_up="once")
    world.clock.advance(7 * 86_400 + 30)
    assert await fire_all(world) == 2
    by_name = {m.headers[SCHEDULE_HEADER]: tick_of(m) for m in await world.drain()}
    assert by_name["m"] == begin + timedelta(days=7)
    assert timedelta(0) <= world.clock.now - by_name["c"] < timedelta(minutes=5)
    assert by_name["c"].minute % 5 == 0


@case("schedules", "after a week down: skip fires only a tick that is not late")
async def catch_up_skip(world: World) -> None:
    minute = timedelta(minutes=1)
    await world.queue.schedule("m", 1, every=2 * minute, catch_up="skip", grace=minute)
    world.clock.advance(7 * 86_400 + 90)
    assert await fire_all(world) == 0
    assert (await world.queue.schedules.get("m")).next_at == world.later(30)
    world.clock.advance(30 + 59)
    assert await fire_all(world) == 1
    world.clock.advance(1)
    assert await fire_all(world) == 0


@case("schedules", "the same terms again change nothing")
async def again(world: World) -> None:
    made = await world.queue.schedule("s", {"a": [1]}, every=HOUR, headers={"h": 1}, key="k")
    world.clock.advance(60)
    assert (
        await world.queue.schedule("s", {"a": [1]}, every=HOUR, headers={"h": 1}, key="k") == made
    )


@case("schedules", "an edit of the message keeps the next tick, new times count from now")
async def edit(world: World) -> None:
    made = await world.queue.schedule("s", "old", every=HOUR)
    world.clock.advance(60)
    edited = await world.queue.schedule("s", "new", every=HOUR, channel="b")
    assert edited.next_at == made.next_at and edited.revision > made.revision
    world.clock.advance(3600)
    await fire_all(world)
    message = await world.claim_one()
    assert (message.text(), message.channel) == ("new", "b")
    faster = await world.queue.schedule("s", "new", every=timedelta(minutes=1), channel="b")
    assert faster.next_at == world.later(60)
    assert faster.last_at == made.next_at


@case("schedules", "a pause skips its ticks, whatever the catch-up policy")
async def pause(world: World) -> None:
    begin = world.clock.now
    await world.queue.schedule("s", 1, every=HOUR, catch_up="all")
    held = await world.queue.schedules.pause("s")
    assert held.paused and held.look_at is None
    world.clock.advance(5.5 * 3600)
    assert (await fire(world)).look_again is None
    assert (await world.queue.schedule("s", 2, every=HOUR, catch_up="all")).paused
    back = await world.queue.schedules.resume("s")
    assert (back.paused, back.next_at) == (False, begin + 6 * HOUR)
    assert await fire_all(world) == 0


@case("schedules", "run now publishes, paused or not, and leaves the ticks alone")
async def run_now(world: World) -> None:
    made = await world.queue.schedule("s", "x", every=HOUR)
    await world.queue.schedules.pause("s")
    (published,) = await world.queue.schedules.run("s")
    message = await world.claim_one()
    assert (message.id, message.text()) == (published.id, "x")
    assert tick_of(message) == world.clock.now
    assert (await world.queue.schedules.resume("s")).next_at == made.next_at


@case("schedules", "a removed one is gone, and its name is free")
async def remove(world: World) -> None:
    first = await world.queue.schedule("s", 1, every=HOUR)
    await world.queue.schedules.remove("s")
    world.clock.advance(7200)
    assert await fire_all(world) == 0
    second = await world.queue.schedule("s", 1, every=HOUR)
    assert second.revision > first.revision and second.next_at == world.later(3600)


@case("schedules", "of a name that is not there are said to be missing")
async def missing(world: World) -> None:
    schedules = world.queue.schedules
    for verb in (schedules.get, schedules.pause, schedules.resume, schedules.run, schedules.remove):
        with raises(ScheduleMissing):
            await verb("nothing")


@case("schedules", "are listed by queue and name, page by page, with all they were asked for")
async def listing(world: World) -> None:
    for name in ("b", "a", "c"):
        await world.queue.schedule(
            name,
            {"of": name},
            cron="0 3 * * MON-FRI",
            zone="Europe/Zurich",
            catch_up="skip",
            grace=timedelta(seconds=90),
            channel="tenant",
            kind="report",
            key=f"key {name}",
            key_window=HOUR,
            headers={"h": name},
            priority=3,
            expires_in=HOUR,
            max_attempts=2,
        )
    page = await world.queue.schedules.list(queue=world.name, limit=2)
    rest = await world.queue.schedules.list(queue=world.name, after=page[-1])
    assert [s.name for s in (*page, *rest)] == ["a", "b", "c"]
    found = page[0]
    assert (found.cron, found.zone, found.every) == ("0 3 * * MON-FRI", "Europe/Zurich", None)
    assert (found.catch_up, found.grace) == ("skip", timedelta(seconds=90))
    assert (found.channel, found.kind, found.priority) == ("tenant", "report", 3)
    assert (found.key, found.key_window, found.headers) == ("key a", HOUR, {"h": "a"})
    assert (found.expires_in, found.max_attempts, found.payload) == (HOUR, 2, b'{"of":"a"}')
    assert (found.paused, found.fired, found.last_at, found.error) == (False, 0, None, None)
    assert found == await world.queue.schedules.get("a")


@case("schedules", "that cannot be are refused, and what is there stays")
async def refused(world: World) -> None:
    kept = await world.queue.schedule("s", 1, every=HOUR)
    wrong: list[dict[str, Any]] = [
        {},
        {"cron": "0 3 * * *", "every": HOUR},
        {"cron": "61 3 * * *"},
        {"cron": "0 3 * *"},
        {"cron": "0 0 3 * * *"},
        {"cron": "0 0 31 2 *"},
        {"cron": "0 0 30 2 *"},
        {"cron": "nonsense"},
        {"cron": ""},
        {"cron": 7},
        {"cron": "0 3 * * *", "zone": "Europe/Atlantis"},
        {"cron": "0 3 * * *", "zone": "../etc/passwd"},
        {"cron": "0 3 * * *", "zone": "Europe"},
        {"every": HOUR, "zone": "Europe/Zurich"},
        {"every": timedelta(0)},
    ]
    for options in wrong:
        with raises(InvalidSchedule):
            await world.queue.schedule("s", 2, **options)
    with raises(InvalidOption):
        await world.queue.schedule("s", 2, every=HOUR, catch_up="never")  # type: ignore[arg-type]
    with raises(InvalidTime):
        await world.queue.schedule("s", 2, every=-HOUR)
    assert await world.queue.schedules.get("s") == kept


@case("schedules", "words for usual times are understood")
async def words(world: World) -> None:
    world.clock.now = datetime(2027, 5, 4, 3, 2, 1, tzinfo=UTC)
    for word, first in (
        ("@hourly", datetime(2027, 5, 4, 4, tzinfo=UTC)),
        ("@daily", datetime(2027, 5, 5, tzinfo=UTC)),
        ("@weekly", datetime(2027, 5, 9, tzinfo=UTC)),
        ("@monthly", datetime(2027, 6, 1, tzinfo=UTC)),
        ("@yearly", datetime(2028, 1, 1, tzinfo=UTC)),
    ):
        assert (await world.queue.schedule(word, 1, cron=word)).next_at == first


@case("schedules", "many firing at once fire each tick once")
async def together(world: World) -> None:
    names = [f"s{n}" for n in range(20)]
    for name in names:
        await world.queue.schedule(name, name, every=HOUR, catch_up="all")
    clients = [world.client() for _ in range(6)]
    world.clock.advance(3 * 3600)
    for _ in range(3):
        reports = await asyncio.gather(
            *(c.fire_schedules(queues=[world.name], limit=7) for c in clients)
        )
    await fire_all(world)
    assert all(report.put_aside == 0 for report in reports)
    found = [(m.text(), tick_of(m)) for m in await world.drain()]
    assert len(found) == len(set(found)) == 60


@case("schedules", "edited, paused and resumed while they fire, never fire a tick twice")
async def edited_while_firing(world: World) -> None:
    await world.queue.schedule("s", 0, every=timedelta(seconds=1), catch_up="all")
    firing, editing = world.client(), world.client()

    async def edit_often() -> None:
        for number in range(1, 15):
            await editing.schedule("s", number, every=timedelta(seconds=1), catch_up="all")
            if number % 5 == 0:
                await editing.schedules.pause("s")
                await editing.schedules.resume("s")

    async def fire_often() -> None:
        for _ in range(15):
            world.clock.advance(1)
            await firing.fire_schedules(queues=[world.name])

    await asyncio.gather(edit_often(), fire_often(), fire_often())
    await fire_all(world)
    found = await ticks(world)
    assert len(found) == len(set(found)) and found
    assert (await world.queue.schedules.get("s")).fired == len(found)


@case("schedules", "with a key: no second message while the first one lives")
async def no_overlap(world: World) -> None:
    await world.queue.schedule("s", 1, every=HOUR, key="one at a time")
    world.clock.advance(3600)
    await fire_all(world)
    message = await world.claim_one(lease=timedelta(hours=20))
    world.clock.advance(3600)
    await fire_all(world)
    assert not await world.queue.claim()
    await message.complete()
    world.clock.advance(3600)
    await fire_all(world)
    assert tick_of(await world.claim_one()) == world.clock.now


@case("schedules", "a dead letter gives its key up to the next tick")
async def dead_key(world: World) -> None:
    """One failure must not silence the schedule for good. Publishes still find the key in use."""
    await world.queue.schedule("s", 1, every=HOUR, key="one at a time")
    letters = []
    for _ in range(2):
        world.clock.advance(3600)
        assert await fire_all(world) == 1
        message = await world.claim_one()
        assert message.key == "one at a time"
        await message.fail("no")
        letters.append(message.id)
        published = await world.queue.publish(2, key="one at a time")
        assert (published.status, published.id) == ("existing", message.id)
    (ran,) = await world.queue.schedules.run("s")
    assert ran.status == "published"
    # What was redriven lives beside it, without the key; the key is the new message's.
    await world.queue.dead_letters.redrive(letters)
    keys = {m.id: m.key for m in await world.queue.claim(5)}
    assert keys.pop(ran.id or 0) == "one at a time"
    assert keys == dict.fromkeys(letters)
    world.clock.advance(60)
    assert (await world.queue.publish(2, key="one at a time")).id == ran.id


@case("schedules", "into a full channel wait until there is room, and lose no tick")
async def full(world: World) -> None:
    await world.queue.channel("a").limit(backlog=2)
    begin = world.clock.now
    await world.queue.schedule("s", 1, every=HOUR, channel="a", catch_up="all")
    await world.queue.schedule("other", 1, every=HOUR, channel="b", catch_up="all")
    world.clock.advance(4 * 3600)
    report = await fire(world)
    assert (report.fired, report.put_aside) == (2 + 4, 1)
    stuck = await world.queue.schedules.get("s")
    assert stuck.error and "full" in stuck.error and stuck.next_at == begin + 3 * HOUR
    await world.queue.complete(await world.drain())
    world.clock.advance(60)
    assert await fire_all(world) == 2
    assert await ticks(world) == [begin + 3 * HOUR, begin + 4 * HOUR]
    assert (await world.queue.schedules.get("s")).error is None


@case("schedules", "stated in the caller's transaction exist only if it commits")
async def in_transaction(world: World) -> None:
    async with await world.caller() as mine:
        await world.queue.schedule("s", 1, every=HOUR, connection=mine.connection)
        await mine.rollback()
    with raises(ScheduleMissing):
        await world.queue.schedules.get("s")
    async with await world.caller() as mine:
        await world.queue.schedule("s", 1, every=HOUR, connection=mine.connection)
        await mine.commit()
    async with await world.caller() as mine:
        await world.queue.schedules.remove("s", connection=mine.connection)
        await mine.rollback()
    world.clock.advance(3600)
    assert await fire_all(world) == 1


@case("schedules", "one that an open transaction edits waits for it, and holds up no other")
async def held(world: World) -> None:
    world.needs("open transactions")
    await world.queue.schedule("held", 1, every=HOUR)
    await world.queue.schedule("free", 2, every=HOUR)
    world.clock.advance(3600)
    async with await world.caller() as mine:
        await world.queue.schedules.remove("held", connection=mine.connection)
        report = await fire(world)
        assert (report.fired, report.look_again) == (1, timedelta(seconds=1))
        assert (await world.claim_one()).json() == 2
        await mine.rollback()
    assert await fire_all(world) == 1
