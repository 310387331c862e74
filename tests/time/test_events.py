"""Events when something breaks: connections, the server, readers. And that nobody pays for them
while nobody listens."""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from laneway import AsyncQueue, Event, Queue
from laneway.client import AsyncEvents
from laneway.dev.embedded import EmbeddedPostgres
from laneway.event import MOST_MAIL
from tests.place import Place

SCHEMES = ["postgresql", "postgresql+asyncpg"]
SOON = timedelta(milliseconds=500)


def ask(place: Place, text: str) -> Any:
    """One value, with the schema in place of {}."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        query = sql.SQL(text).format(*[sql.Identifier(place.schema)] * text.count("{}"))
        row = connection.execute(query).fetchone()
        return None if row is None else row[0]


def ask_until(place: Place, text: str, answer: object) -> None:
    end = time.monotonic() + 10
    while ask(place, text) != answer:
        assert time.monotonic() < end, f"never {answer}: {text}"
        time.sleep(0.05)


def cut_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid() "
            "and backend_type = 'client backend'"
        )


async def until(events: AsyncEvents, right: Callable[[Event], bool]) -> list[Event]:
    found = []
    async with asyncio.timeout(30):
        async for event in events:
            found.append(event)
            if right(event):
                break
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_reader_survives_cut_connections(
    place: Place, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    async def main() -> None:
        url = place.url.replace("postgresql", scheme, 1)
        async with AsyncQueue(url, schema=place.schema) as queue:
            await queue.install()
            async with queue.events(what=["published", "missed"]) as events:
                first = await queue.publish(1)
                await until(events, lambda e: e.message_id == first.id)
                ids: list[int | None] = []
                reading = asyncio.create_task(until(events, lambda e: [e.message_id] == ids[2:]))
                for _ in range(3):
                    await asyncio.sleep(0.4)
                    await asyncio.to_thread(cut_connections, place.url)
                    with Queue(place.url, schema=place.schema) as other:
                        ids.append((await asyncio.to_thread(other.publish, 2)).id)
                # A mailbox does not mind; only who was reading when it broke may have missed some.
                found = [event.message_id for event in await reading]
                assert [id for id in found if id is not None] == ids or None in found
                assert found[-1] == ids[-1]

    asyncio.run(main())


def test_a_reader_survives_a_crash_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    async def main(server: EmbeddedPostgres) -> None:
        async with AsyncQueue(server.url()) as queue:
            await queue.install()
            async with queue.events(what=["published"]) as events:
                first = await queue.publish(1)
                await until(events, lambda e: e.message_id == first.id)
                reading = asyncio.create_task(until(events, lambda e: e.what == "missed"))
                await asyncio.sleep(0.1)
                await asyncio.to_thread(server.kill)
                await asyncio.sleep(0.5)
                await asyncio.to_thread(server.start)
                assert [event.what for event in await reading] == ["missed"]
                with Queue(server.url()) as other:
                    second = await asyncio.to_thread(other.publish, 2)
                found = await until(events, lambda e: e.message_id == second.id)
                assert found[-1].what == "published"

    with EmbeddedPostgres(version=18) as server:
        asyncio.run(main(server))


def test_a_cancelled_step_of_the_loop_loses_nothing_unsaid(place: Place) -> None:
    chance = random.Random(3)

    async def main() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            async with queue.events(what=["published"]) as events:
                waiting: set[int | None] = set()
                for _ in range(150):
                    waiting.add((await queue.publish(1)).id)
                    try:
                        async with asyncio.timeout(chance.uniform(0, 0.02)):
                            event = await anext(events)
                    except TimeoutError:
                        continue
                    if event.what == "missed":
                        waiting.clear()
                    waiting.discard(event.message_id)
                last = (await queue.publish(1)).id
                for event in await until(events, lambda e: e.message_id == last):
                    if event.what == "missed":
                        waiting.clear()
                    waiting.discard(event.message_id)
                assert not waiting, "neither heard nor said to be missed"

    asyncio.run(main())


def test_an_idle_reader_is_rung_for(place: Place) -> None:
    async def main() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            async with queue.events(what=["published"]) as events:
                reading = asyncio.create_task(until(events, lambda e: e.what == "published"))
                count = "select count(*) from {}.sleeper where queue like 'mail %'"
                await asyncio.to_thread(ask_until, place, count, 1)
                await asyncio.sleep(2)  # by now it would look once a second
                begin = time.monotonic()
                await queue.publish(1)
                await reading
                assert time.monotonic() - begin < 0.9
            assert await asyncio.to_thread(ask, place, count) == 0, "it is closed and awake"

    asyncio.run(main())


def test_a_closed_client_closes_its_readers_connections(place: Place) -> None:
    async def main() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            events = queue.events(idle=timedelta(seconds=2))
            await events.open()
            reading = asyncio.create_task(until(events, lambda e: False))
            await asyncio.sleep(1)
            reading.cancel()
        count = (
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid() and query ilike '%listen%'"
        )
        await asyncio.to_thread(ask_until, place, count, 0)

    asyncio.run(main())


def test_a_sync_reader_is_ended_by_another_thread(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        events = queue.events(what=["published"])
        events.open()
        found: list[Event] = []
        reader = threading.Thread(target=lambda: found.extend(events))
        reader.start()
        published = queue.publish(1)
        end = time.monotonic() + 10
        while not found and time.monotonic() < end:
            time.sleep(0.01)
        events.close()
        reader.join(10)
        assert not reader.is_alive()
        assert [event.message_id for event in found] == [published.id]


def test_with_nobody_listening_nothing_is_written(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        queue.publish_many(range(10))
        queue.complete(queue.claim(10))
        assert ask(place, "select last_value from {}.mail_number where is_called") is None
        assert ask(place, "select count(*) from {}.mail") == 0


def test_a_mailbox_that_nobody_reads_stops_growing(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        events = queue.events(what=["published"], idle=SOON)
        events.open()
        queue.publish(1)
        assert ask(place, "select count(*) from {}.mail") == 1
        # As if as many rows had been written to all mailboxes.
        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute(sql.SQL("set search_path = {}").format(sql.Identifier(place.schema)))
            connection.execute("select setval('mail_number', %s)", [MOST_MAIL + 7])
        queue.publish(2)
        assert ask(place, "select count(*) from {}.mail") == 1, "the mailbox is full"
        assert [event.what for event in events] == ["published", "missed"]
        third = queue.publish(3)
        assert [event.message_id for event in events] == [third.id], "and it goes on"


def test_upkeep_sweeps_the_mail_of_the_dead(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        queue.events(what=["published"]).open()
        for number in range(5):
            queue.publish(number)
        assert ask(place, "select count(*) from {}.mail") == 5
        age = "update {}.listener set until = clock_timestamp() - interval %s returning 1"
        ask(place, age.replace("%s", "'1 second'"))
        queue.upkeep()
        assert ask(place, "select count(*) from {}.mail") == 0
        assert ask(place, "select count(*) from {}.listener") == 1
        ask(place, age.replace("%s", "'2 hours'"))
        queue.upkeep()
        assert ask(place, "select count(*) from {}.listener") == 0


def test_a_publish_is_heard_whatever_the_callers_isolation(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        events = queue.events(what=["published"], idle=SOON)
        events.open()
        for level in ("repeatable read", "serializable"):
            with psycopg.connect(place.url) as connection:
                connection.execute(f"set transaction isolation level {level}".encode())
                published = queue.publish(1, connection=connection)
            assert [event.message_id for event in events] == [published.id]
