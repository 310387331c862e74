"""Notifiers: idle workers are notified, busy ones are not, and a dead connection is replaced."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from laneway import AsyncQueue, NewMessage
from laneway.drivers.choice import open_notifier
from laneway.drivers.listener import Listener, ListenNotifier, Notifier
from tests.client.worlds import run_async
from tests.place import Place

MINUTE = timedelta(minutes=1)


@asynccontextmanager
async def notified(place: Place, url: str) -> AsyncIterator[tuple[AsyncQueue, Notifier]]:
    """A client, and a notifier for its queue "mail" that is known to listen."""
    async with AsyncQueue(place.url, schema=place.schema, name="mail") as queue:
        await queue.install()
        channel = await queue.database.run(queue.database.engine.claims.notify_channel())
        notifier = open_notifier(url, channel=channel, wanted=frozenset({"mail"}), pooler=False)
        assert isinstance(notifier, ListenNotifier)
        try:
            async with asyncio.timeout(10):
                await notifier.listening.wait()
            assert await notifier.wait(5)  # once it listens
            assert not await notifier.wait(0.05)
            yield queue, notifier
        finally:
            await notifier.close()


async def sleep(queue: AsyncQueue, length: timedelta | None = MINUTE) -> None:
    await queue.database.run(queue.database.engine.claims.sleep(("mail",), "sleeper", length))


async def quiet(notifier: Notifier) -> None:
    """Hears what is still under way."""
    while await notifier.wait(0.2):
        pass


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_publish_rings_for_a_sleeper(place: Place, driver: str) -> None:
    @run_async
    async def rings() -> None:
        url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url
        async with notified(place, url) as (queue, notifier):
            await sleep(queue)
            await queue.publish(1)
            assert await notifier.wait(5)

    rings()


@run_async
async def test_nobody_rings_for_who_is_awake_or_at_another_queue(place: Place) -> None:
    async with notified(place, place.url) as (queue, notifier):
        await queue.publish(1)
        assert not await notifier.wait(0.2)
        await sleep(queue)
        await queue.publish(1, queue="another")
        assert not await notifier.wait(0.2)
        await sleep(queue, None)
        await queue.publish(1)
        assert not await notifier.wait(0.2)


@run_async
async def test_whatever_brings_work_rings(place: Place) -> None:
    async with notified(place, place.url) as (queue, notifier):
        await queue.channel("limited").limit(concurrency=1)
        await sleep(queue)
        for number in range(5):
            await queue.publish(number, channel="limited" if number == 0 else "free")
        assert await notifier.wait(5)
        given, deferred, failed, freed, *_ = sorted(
            await queue.claim(limit=5), key=lambda m: m.channel == "limited"
        )
        await quiet(notifier)
        await given.give_back()
        assert await notifier.wait(5), "give back"
        await deferred.defer(timedelta(seconds=1))
        assert await notifier.wait(5), "defer"
        await failed.fail("x")
        await queue.complete([freed])
        await quiet(notifier)
        await queue.dead_letters.redrive(queue="mail")
        assert await notifier.wait(5), "redrive"
        await queue.channel("free").pause()
        assert await notifier.wait(5), "pause and resume"
        await queue.channel("free").limit(rate=5)
        assert await notifier.wait(5), "limit"


@run_async
async def test_an_ended_lease_of_a_limited_channel_rings(place: Place) -> None:
    async with notified(place, place.url) as (queue, notifier):
        await queue.channel("limited").limit(concurrency=1)
        await queue.publish_many([1, 2], channel="limited")
        (message,) = await queue.claim(limit=2)
        await sleep(queue)
        await message.complete()
        assert await notifier.wait(5)


@run_async
async def test_a_rolled_back_publish_notifies_nobody(place: Place) -> None:
    async with notified(place, place.url) as (queue, notifier):
        await sleep(queue)
        connection = await psycopg.AsyncConnection.connect(place.url)
        async with connection:
            await queue.publish(1, connection=connection)
            assert not await notifier.wait(0.2)
            await connection.rollback()
            assert not await notifier.wait(0.2)
            await queue.publish(1, connection=connection)
            await connection.commit()
            assert await notifier.wait(5)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_cut_connection_is_replaced(place: Place, driver: str) -> None:
    @run_async
    async def heals() -> None:
        url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url
        async with notified(place, url) as (queue, notifier):
            await sleep(queue)
            connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
            async with connection:
                cursor = await connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where query like '%pg_notify%' and pid <> pg_backend_pid() "
                    "and datname = current_database()"
                )
                assert (await cursor.fetchall()) == [(True,)]
            assert await notifier.wait(15), "notified once it listens again"
            await queue.publish(1)
            assert await notifier.wait(5)

    heals()


async def _close_while_connecting() -> None:
    connected = asyncio.Event()

    async def connect() -> Listener:
        await connected.wait()
        return _Silent()

    notifier = ListenNotifier(connect, frozenset(["q"]))
    await asyncio.sleep(0.01)
    connected.set()
    await asyncio.sleep(0)
    begin = time.monotonic()
    async with asyncio.timeout(3):
        await notifier.close()
    assert time.monotonic() - begin < 2


class _Silent:
    """A connection on which nothing arrives."""

    async def receive(self, seconds: float) -> list[str]:
        await asyncio.sleep(seconds)
        return []

    async def notify(self, payload: str) -> None: ...

    async def probe(self) -> None: ...

    async def close(self) -> None: ...


def test_closing_ends_a_notifier_that_is_just_connecting() -> None:
    """Before Python 3.12 ``wait_for`` swallows a cancellation that meets its result."""
    asyncio.run(_close_while_connecting())


@run_async
async def test_a_message_for_later_rings_nobody(place: Place) -> None:
    """A sleeping worker looks every second, and so learns when it is due. One that is due before
    the next look rings."""
    later = datetime.now(UTC) + MINUTE
    async with notified(place, place.url) as (queue, notifier):
        await queue.publish_many([1, 2, 3])
        first, second, third = await queue.claim(3)
        await sleep(queue)
        await queue.publish(1, delay=MINUTE)
        await queue.publish(1, at=later)
        await queue.publish_many([NewMessage(n, delay=MINUTE) for n in range(2)])
        await first.defer(MINUTE)
        await second.give_back(delay=MINUTE)
        assert not await notifier.wait(0.3)
        for soon in (
            lambda: queue.publish(1, delay=0.5),
            lambda: queue.publish_many([NewMessage(1, at=later), NewMessage(2)]),
            lambda: third.defer(1),
        ):
            await soon()
            assert await notifier.wait(5)
            await quiet(notifier)
