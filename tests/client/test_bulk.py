"""Ten thousand messages and more: by COPY, as if each batch had been published in one statement."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from laneway import AsyncQueue, NewMessage, Queue
from laneway.client.shared.draft import draft_all
from laneway.contract import BATCH
from laneway.engines.postgresql import publish as publishing
from laneway.errors import BacklogFull, InvalidOption
from laneway.event import EventFilter
from laneway.model import Draft
from tests.place import Place

_AT = datetime(2031, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
_PAST = datetime(1999, 5, 1, tzinfo=UTC)
MESSAGES = [
    NewMessage(b"", "a"),
    NewMessage({"n": 1}, "a", kind="k", priority=7, headers={"h": ["ü", None]}),
    NewMessage("text", "日本", delay=timedelta(minutes=5), max_attempts=3),
    NewMessage(b"\x00\xff", "a", at=_AT, expires_at=_AT + timedelta(1)),
    NewMessage(b"x" * 5000, "a", at=_PAST),
    NewMessage({"n": 2}, "a", expires_in=timedelta(days=1), delay=timedelta(0)),
    NewMessage({"n": 3}, "b", queue="by kind", kind="k"),
    NewMessage({"n": 4}, "b", queue="by kind", headers={}),
    NewMessage({"n": 5}, "a", keep_result=60),
    NewMessage({"n": 6}, "a"),
]
_ROWS = """
    select channel, channel_id, kind, priority, content_type, headers, payload, max_attempts,
        attempt, queue, due = published_at, due - published_at, expires_at - published_at, by_kind,
        part, key, state, published_at = first_published_at
    from {s}.message order by channel_id, id"""
_WAKES = """
    select queue, channel, channel_id, lane, priority, sum(n), due <= at, at - min(at) over (),
        bool_and(message_id <= (
            select min(m.id) from {s}.message m where m.channel_id = w.channel_id))
    from {s}.wake w
    group by queue, channel, channel_id, lane, priority, due, at order by 1, 2, 4, 5, at"""


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema, upkeep_every=None) as client:
        client.install()
        yield client


def drafts(messages: list[NewMessage]) -> list[Draft]:
    return draft_all(messages, "default", "default", 100_000)


def look(place: Place, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url) as connection:
        statement = sql.SQL(text).format(s=sql.Identifier(place.schema))
        return connection.execute(statement).fetchall()


def forget(place: Place) -> None:
    with psycopg.connect(place.url) as connection:
        text = sql.SQL("delete from {s}.message; delete from {s}.wake")
        connection.execute(text.format(s=sql.Identifier(place.schema)))


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without times of day: what is due at a moment is so long after whatever now was."""
    year = timedelta(days=365)
    return [
        tuple("far" if isinstance(v, timedelta) and abs(v) > year else v for v in row)
        for row in rows
    ]


def both(place: Place) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    wakes = [row[:7] for row in look(place, _WAKES)]
    return comparable(look(place, _ROWS)), wakes


@pytest.mark.parametrize("part", [3, publishing._PART])
def test_copied_messages_differ_in_nothing(
    queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(publishing, "_FIRST_PART", part)
    monkeypatch.setattr(publishing, "_PART", part)
    look(place, "select {s}.by_kind_v1(array['by kind'])")
    given = drafts(MESSAGES)
    plain = queue.database.run(queue.database.engine.messages.publish(given), atomic=True)
    expected = both(place)
    forget(place)
    copied = queue.database.run(
        queue.database.engine.messages.publish_bulk(given, len(given)), atomic=True
    )
    assert both(place) == expected
    assert {row[-1] for row in look(place, _WAKES)} == {True}, "nothing lies before a position"
    assert [one.status for one in copied] == [one.status for one in plain]
    found = dict(look(place, "select id, payload from {s}.message"))
    assert [found[one.id] for one in copied] == [draft.payload for draft in given]


PLAIN = [NewMessage(b"%d" % n, "abc"[n % 3], kind="k", priority=n % 2) for n in range(7)]
MIXED = [*PLAIN, NewMessage(b"7", "a", delay=60), NewMessage(b"8", "a", headers={"h": 1}), *PLAIN]
_TIMES = """
    select array_agg(distinct m.due order by m.due), array_agg(distinct m.published_at),
        (select array_agg(distinct w.due order by w.due) from {s}.wake w),
        (select array_agg(distinct w.at order by w.at) from {s}.wake w)
    from {s}.message m"""


@pytest.mark.parametrize("given", [PLAIN, MIXED])
def test_times_that_the_table_gives_are_those_of_the_wakes(
    queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch, given: list[NewMessage]
) -> None:
    """A claim that met a wake before its messages are due would not look at them again."""
    monkeypatch.setattr(publishing, "_FIRST_PART", 3)
    monkeypatch.setattr(publishing, "_PART", 2)
    queue.database.run(queue.database.engine.messages.publish(drafts(given)), atomic=True)
    expected = both(place)
    forget(place)
    copied = queue.database.run(
        queue.database.engine.messages.publish_bulk(drafts(given), len(given)), atomic=True
    )
    assert both(place) == expected
    ((dues, published, wakes_due, wakes_at),) = look(place, _TIMES)
    assert dues == wakes_due == wakes_at
    assert published == dues[:1]
    payloads = dict(look(place, "select id, payload from {s}.message"))
    assert [payloads[one.id] for one in copied] == [draft.payload for draft in drafts(given)]
    assert len(queue.claim(100)) == sum(message.delay is None for message in given)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_so_it_is_with_asyncio(queue: Queue, place: Place, driver: str) -> None:
    url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url

    async def publish() -> None:
        async with AsyncQueue(url, schema=place.schema, upkeep_every=None) as client:
            database = client.database
            await database.run(
                database.engine.messages.publish_bulk(drafts(MESSAGES), len(MESSAGES)), atomic=True
            )

    queue.database.run(queue.database.engine.messages.publish(drafts(MESSAGES)), atomic=True)
    expected = both(place)
    forget(place)
    asyncio.run(publish())
    assert both(place) == expected


def test_a_large_batch_is_copied_and_claimed_in_order(queue: Queue, place: Place) -> None:
    published = queue.publish_many([NewMessage(b"%d" % n, f"c{n % 3}") for n in range(BATCH)])
    for ids in ([one.id or 0 for one in published[n::3]] for n in range(3)):
        assert ids == sorted(ids), "those of a channel are in order"
    assert look(place, "select channel, sum(n) from {s}.wake group by 1 order by 1") == [
        ("c0", 3334),
        ("c1", 3333),
        ("c2", 3333),
    ]
    numbers = [int(m.payload) for m in queue.claim(3000) if m.channel == "c1"]
    assert numbers[:5] == [1, 4, 7, 10, 13]


def test_a_copy_that_fails_leaves_nothing(
    queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the messages and their wakes, and in the middle of the messages."""
    wanted = drafts(MESSAGES)

    def broken(self: Any) -> Iterator[bytes]:
        raise RuntimeError("on purpose")
        yield b""

    monkeypatch.setattr(publishing.CopiedRows, "wakes", broken)
    with pytest.raises(RuntimeError, match="on purpose"):
        queue.database.run(
            queue.database.engine.messages.publish_bulk(wanted, len(wanted)), atomic=True
        )
    monkeypatch.undo()
    bad = [*wanted, wanted[0]._replace(payload=None)]  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        queue.database.run(queue.database.engine.messages.publish_bulk(bad, len(bad)), atomic=True)
    assert look(place, "select count(*) from {s}.message") == [(0,)]
    assert look(place, "select count(*) from {s}.wake") == [(0,)]
    assert queue.publish_many([b"1"])[0].status == "published", "the client goes on"


LATE = BATCH - 7
"""Far behind what the server has by then."""


def invalid_late() -> list[Any]:
    return [*(b"x" for _ in range(LATE)), NewMessage(b"x", "a", priority=-1), *([b"x"] * 7)]


def test_an_invalid_message_among_many_publishes_none(queue: Queue, place: Place) -> None:
    """They are drafted while the server loads those before them."""
    with pytest.raises(InvalidOption, match="priority"):
        queue.publish_many(invalid_late())
    assert look(place, "select count(*) from {s}.message") == [(0,)]
    assert look(place, "select count(*) from {s}.wake") == [(0,)]
    assert len(queue.publish_many([b"1"] * BATCH)) == BATCH, "the client goes on"


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_so_it_is_with_asyncio_too(queue: Queue, place: Place, driver: str) -> None:
    url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url

    async def publish() -> None:
        async with AsyncQueue(url, schema=place.schema, upkeep_every=None) as client:
            with pytest.raises(InvalidOption, match="priority"):
                await client.publish_many(invalid_late())
            assert look(place, "select count(*) from {s}.message") == [(0,)]
            assert len(await client.publish_many([b"1"] * BATCH)) == BATCH, "the client goes on"

    asyncio.run(publish())


def test_a_list_that_changes_meanwhile_changes_nothing(queue: Queue, place: Place) -> None:
    given: list[Any] = [b"x" for _ in range(BATCH)]

    class Payload(dict[str, int]):
        """Whoever draws it up empties the list, as another thread might."""

        def items(self) -> Any:
            given.clear()
            return super().items()

    given[0] = Payload(n=1)
    assert len(queue.publish_many(given)) == BATCH
    assert given == []
    assert look(place, "select count(*) from {s}.message") == [(BATCH,)]


def test_a_key_among_many_is_kept(queue: Queue, place: Place) -> None:
    first = queue.publish(b"x", key="k").id
    given: list[Any] = [b"x" for _ in range(BATCH)]
    given[-1] = NewMessage(b"x", key="k")
    results = queue.publish_many(given)
    assert (results[-1].id, results[-1].status) == (first, "existing")
    assert look(place, "select count(*) from {s}.message") == [(BATCH,)]


def test_a_channel_that_refuses_some_is_asked(queue: Queue, place: Place) -> None:
    queue.channel("a").limit(backlog=2)
    with pytest.raises(BacklogFull, match=f"5 of {BATCH + 3:,}|5 of {BATCH + 3}") as refused:
        queue.publish_many(
            [*(NewMessage(b"x", "a") for _ in range(7)), *([NewMessage(b"x", "b")] * (BATCH - 4))]
        )
    assert sum(one.refused for one in refused.value.results) == 5
    assert look(place, "select count(*) from {s}.message") == [(BATCH - 2,)]


def test_listeners_and_sleepers_are_told(queue: Queue, place: Place) -> None:
    database = queue.database
    database.run(database.engine.events.listen(EventFilter(), timedelta(seconds=30)))
    database.run(database.engine.claims.sleep(("by kind",), "worker", timedelta(seconds=30)))
    ((channel,),) = look(place, "select {s}.notify_channel_v1()")
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        database.run(
            database.engine.messages.publish_bulk(drafts(MESSAGES), len(MESSAGES)), atomic=True
        )
        heard = [notify.payload for notify in connection.notifies(timeout=10, stop_after=1)]
    assert heard == ["by kind"]
    assert look(place, "select sum(cardinality(ids)), min(what) from {s}.mail") == [
        (len(MESSAGES), "published")
    ]
