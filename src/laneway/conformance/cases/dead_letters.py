"""Dead letters: list, redrive, discard."""

from datetime import timedelta
from inspect import isawaitable
from typing import Any

from laneway.conformance.registry import case, raises
from laneway.conformance.world import World
from laneway.contract import TELL_WITHIN
from laneway.errors import InvalidOption
from laneway.inspection import DeadLetterPosition
from laneway.model import DeadLetter, NewMessage


async def six(world: World) -> None:
    """Six dead letters in two channels, of two kinds, for two reasons, a second apart."""
    for n in range(6):
        await world.queue.publish(n, channel=f"c{n % 2}", kind=f"k{n % 3}", headers={"n": n})
        await (await world.claim_one()).fail(f"r{n // 3}")
        world.clock.advance(1)


@case("dead letter", "the list is newest first, in pages, by every filter")
async def listed(world: World) -> None:
    start = world.clock.now
    await six(world)
    letters = world.queue.dead_letters

    async def numbers(**options: object) -> list[int]:
        found = await letters.list(queue=world.name, **options)  # type: ignore[arg-type]
        return [int(letter.payload) for letter in found]

    assert await numbers() == [5, 4, 3, 2, 1, 0]
    assert await numbers(channel="c1") == [5, 3, 1]
    assert await numbers(kind="k0") == [3, 0]
    assert await numbers(reason="r1") == [5, 4, 3]
    assert await numbers(since=start + timedelta(seconds=2)) == [5, 4, 3, 2]
    assert await numbers(until=start + timedelta(seconds=2)) == [1, 0]
    page = await letters.list(queue=world.name, limit=4)
    rest = await letters.list(queue=world.name, limit=4, after=page[-1])
    assert [int(x.payload) for x in [*page, *rest]] == [5, 4, 3, 2, 1, 0]


@case("dead letter", "redrive by id: waits again with a new budget and its first publish time")
async def redrive(world: World) -> None:
    await world.publish(1, max_attempts=2, channel="a", priority=3, headers={"h": 1})
    first = await world.claim_one()
    await first.defer(error="one")
    message = await world.claim_one()
    await message.fail()
    world.clock.advance(3600)
    assert await world.queue.dead_letters.redrive([message.id, 2**60], max_attempts=5) == 1
    again = await world.claim_one()
    assert (again.id, again.max_attempts, again.attempt) == (message.id, 5, 3)
    assert again.first_published_at == message.first_published_at
    assert again.published_at == again.due == world.clock.now
    assert (again.channel, again.priority, again.headers) == ("a", 3, {"h": 1})
    assert again.fence > message.fence
    assert not await world.queue.dead_letters.list(queue=world.name)


@case("dead letter", "the new budget is a whole one")
async def new_budget(world: World) -> None:
    await world.publish(1, max_attempts=2)
    message = await world.claim_one()
    await message.defer(error="one")
    assert not await (await world.claim_one()).defer(error="two")
    await world.queue.dead_letters.redrive([message.id])
    assert await (await world.claim_one()).defer(error="one")
    assert not await (await world.claim_one()).defer(error="two")


@case("dead letter", "redrive by filter, and later")
async def by_filter(world: World) -> None:
    await six(world)
    letters = world.queue.dead_letters
    assert await letters.redrive(queue=world.name, reason="r0") == 3
    assert await letters.redrive(queue=world.name, kind="k2", delay=timedelta(hours=1)) == 1
    assert sorted(m.json() for m in await world.drain()) == [0, 1, 2]
    world.clock.advance(3600)
    assert [m.json() for m in await world.drain()] == [5]
    assert len(await letters.list(queue=world.name)) == 2


@case("dead letter", "redrive is done once")
async def once(world: World) -> None:
    await six(world)
    assert await world.queue.dead_letters.redrive(queue=world.name) == 6
    assert await world.queue.dead_letters.redrive(queue=world.name) == 0
    assert len(await world.drain()) == 6


@case("dead letter", "discard by id and by filter ends them for good")
async def discard(world: World) -> None:
    await six(world)
    letters = world.queue.dead_letters
    (*_, first) = await letters.list(queue=world.name)
    assert await letters.discard([first.id]) == 1
    assert await letters.discard([first.id]) == 0
    assert await letters.discard(queue=world.name, channel="c1") == 3
    left = await letters.list(queue=world.name)
    assert [int(x.payload) for x in left] == [4, 2]
    history = await world.queue.history(first.id)
    assert [(e.outcome, e.terminal) for e in history] == [("failed", False), ("discarded", True)]


@case("dead letter", "nobody empties everything by leaving words out")
async def words(world: World) -> None:
    letters = world.queue.dead_letters
    for call in (letters.redrive, letters.discard):
        with raises(InvalidOption):
            await call()
        with raises(InvalidOption):
            await call([1], queue="q")


@case("dead letter", "a redriven message obeys its channel's limits")
async def limits(world: World) -> None:
    await world.queue.publish_many([NewMessage(n, channel="a") for n in range(4)])
    await world.queue.fail(await world.queue.claim(4))
    await world.queue.channel("a").limit(concurrency=1)
    await world.queue.dead_letters.redrive(queue=world.name)
    assert len(await world.queue.claim(10)) == 1


@case("dead letter", "groups with long texts of letters that take several bytes are read")
async def long_groups(world: World) -> None:
    await world.publish(1)
    await (await world.claim_one()).fail("x" + "é" * 300, error="y" + "€" * 2000)
    (group,) = (await world.queue.dead_letters.groups(queue=world.name)).groups
    assert group.count == 1


@case("dead letter", "groups are by kind and error, whatever numbers and ids are in its text")
async def groups(world: World) -> None:
    errors = [
        TimeoutError("no answer from 10.0.0.7:443 after 30 s"),
        TimeoutError("no answer from 10.0.0.19:443 after 31 s"),
        TimeoutError("refused"),
        LookupError("order 0b2f6c1e-93f5-4a55-8f0e-6f0a3f0d9c11 of 7 <0xdeadbeef>"),
        LookupError("order 5a1c0b7e-1111-4a55-8f0e-6f0a3f0d9c22 of 8 <0x7f001>"),
    ]
    start = world.clock.now
    for number, error in enumerate(errors):
        await world.queue.publish(number, kind="mail" if number < 3 else "order")
        await (await world.claim_one()).fail("error", error=error)
        world.clock.advance(1)
    await world.queue.publish(9, kind="mail")
    last = await world.claim_one()
    await last.fail("error", error=errors[0])
    found, looked, complete = await world.queue.dead_letters.groups(queue=world.name)
    assert (looked, complete) == (6, True)
    assert [(g.kind, g.error_type, g.count) for g in found] == [
        ("mail", "TimeoutError", 3),
        ("order", "LookupError", 2),
        ("mail", "TimeoutError", 1),
    ]
    assert found[0].signature == "no answer from #.#.#.#:# after # s"
    assert found[1].signature == "order <id> of # <<address>>"
    assert found[0].example == last.id and found[0].newest == world.clock.now
    assert found[0].oldest == start
    (largest,) = (await world.queue.dead_letters.groups(queue=world.name, limit=1)).groups
    assert largest == found[0]
    everywhere = (await world.queue.dead_letters.groups()).groups
    assert {group.queue for group in everywhere} >= {world.name}
    info = await world.queue.message(last.id)
    assert info is not None and info.traceback is None, "it was never raised"


@case("dead letter", "groups hold reasons and errors that differ only in quoted values and ids")
async def groups_by_masked_text(world: World) -> None:
    said = (
        ("order 17 was not paid", LookupError("no user 'ann' (ann@shop.example)")),
        ("order 18 was not paid", LookupError("no user 'bob' (bob@shop.example)")),
        ("gone", ValueError('can\'t read "a.csv" of cus_NffrFeUfNV2Hib')),
        ("gone", ValueError('can\'t read "b.csv" of cus_9s6XKzkNRiz8i3')),
        ("key", KeyError("tenant 7")),
    )
    for reason, error in said:
        await world.queue.publish(1, kind="mail")
        await (await world.claim_one()).fail(reason, error=error)
        world.clock.advance(1)
    found = (await world.queue.dead_letters.groups(queue=world.name)).groups
    shown = {group.error_type: (group.count, group.reason, group.text) for group in found}
    assert shown == {
        "LookupError": (2, "order # was not paid", "no user '…' (<email>)"),
        "ValueError": (2, "gone", 'can\'t read "…" of <id>'),
        "KeyError": (1, "key", "'tenant 7'"),
    }, shown
    assert {group.error_type: group.reasons for group in found} == {
        "LookupError": 2,
        "ValueError": 1,
        "KeyError": 1,
    }
    assert {group.signature for group in found} >= {"'…'"}, "the same, whatever the others say"


@case("dead letter", "keeps the traceback of an error that was raised, without passwords")
async def traceback(world: World) -> None:
    def connect(url: str, depth: int) -> None:
        if depth:
            connect(url, depth - 1)
        raise ConnectionError(f"no answer from {url}")

    await world.publish({"n": 1}, {"n": 2}, {"n": 3}, max_attempts=1)
    try:
        connect("postgresql://me:secret@db.example/app", 3)
    except ConnectionError as error:
        await (await world.claim_one()).fail("away", error=error)
        await (await world.claim_one()).defer(error=error)
    await (await world.claim_one()).fail("never raised", error=ValueError("no"))
    letters = {x.reason: x for x in await world.queue.dead_letters.list(queue=world.name)}
    for reason in ("away", "max_attempts"):
        text = letters[reason].traceback
        assert text is not None and text.rstrip().endswith("@db.example/app"), text
        assert text.count("in connect") == 4 and "secret" not in text, text
    assert letters["never raised"].traceback is None
    info = await world.queue.message(letters["away"].id)
    assert info is not None and info.traceback == letters["away"].traceback


@case("dead letter", "a long traceback is cut and keeps its newest frames")
async def long_traceback(world: World) -> None:
    await world.publish({"n": 1})
    try:
        _outermost()
    except LookupError as error:
        await (await world.claim_one()).fail("deep", error=error)
    (letter,) = await world.queue.dead_letters.list(queue=world.name)
    assert letter.traceback is not None and len(letter.traceback) <= 8192
    assert "in _fall" in letter.traceback and "in _outermost" not in letter.traceback
    assert letter.traceback.rstrip().endswith("LookupError: at the bottom")


def _outermost() -> None:
    _even(400)


def _even(left: int) -> None:
    """Two in turn: Python prints one that calls itself only three times."""
    _odd(left - 1)


def _odd(left: int) -> None:
    _even(left - 1) if left > 0 else _fall()


def _fall() -> None:
    raise LookupError("at the bottom")


HOLD = timedelta(minutes=1)


async def untold(world: World, limit: int = 100) -> list[DeadLetter]:
    """A worker's verb, which clients do not have."""
    database = world.queue.database
    plan = database.engine.dead_letters.untold_dead_letters((world.name,), limit, HOLD)
    answer: Any = database.run(plan)
    found: list[DeadLetter] = await answer if isawaitable(answer) else answer
    return found


async def told(world: World, *letters: DeadLetter) -> None:
    database = world.queue.database
    positions = [DeadLetterPosition(letter.died_at, letter.id) for letter in letters]
    answer: Any = database.run(database.engine.dead_letters.dead_letters_told(positions))
    if isawaitable(answer):
        await answer


@case("dead letter", "who is to tell of one gets it alone, and again if nobody was told in time")
async def untold_letters(world: World) -> None:
    await six(world)
    first = await untold(world, 2)
    rest = await untold(world)
    assert [int(letter.payload) for letter in first + rest] == [0, 1, 2, 3, 4, 5]
    oldest = (await world.queue.dead_letters.list(queue=world.name))[-1]
    assert first[0] == oldest
    assert not await untold(world)
    await told(world, *rest)
    world.clock.advance(HOLD.total_seconds() + 1)
    assert await untold(world) == first
    await told(world, *first)
    world.clock.advance(HOLD.total_seconds() + 1)
    assert not await untold(world)
    assert len(await world.queue.dead_letters.list(queue=world.name)) == 6


@case("dead letter", "one that upkeep made is told of too, and one of long ago is not")
async def untold_lapsed(world: World) -> None:
    (id,) = await world.publish(1, max_attempts=1)
    await world.claim_one()
    world.clock.advance(60)
    await world.queue.upkeep()
    (letter,) = await untold(world)
    assert (letter.id, letter.reason, letter.attempt) == (id, "max_attempts", 1)
    world.clock.advance(TELL_WITHIN.total_seconds() + 1)
    assert not await untold(world)


@case("dead letter", "one that died again is another one")
async def untold_again(world: World) -> None:
    await world.publish(1)
    await (await world.claim_one()).fail("first")
    (first,) = await untold(world)
    assert await world.queue.dead_letters.redrive([first.id]) == 1
    assert not await untold(world)
    world.clock.advance(1)
    await (await world.claim_one()).fail("second")
    await told(world, first)
    (second,) = await untold(world)
    assert (second.id, second.reason) == (first.id, "second")
    await told(world, second)
    world.clock.advance(HOLD.total_seconds() + 1)
    assert not await untold(world)
