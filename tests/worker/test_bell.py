"""Bells: who sleeps is rung for, who does not is not, and a dead line heals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest

from penstock import AsyncQueue
from penstock.drivers.bell import Bell
from penstock.drivers.choice import open_bell
from penstock.drivers.listening import ListeningBell
from tests.client.worlds import run_async
from tests.place import Place

MINUTE = timedelta(minutes=1)


@asynccontextmanager
async def ringing(place: Place, url: str) -> AsyncIterator[tuple[AsyncQueue, Bell]]:
    """A client, and a bell for its queue "mail" that is known to hear."""
    async with AsyncQueue(place.url, schema=place.schema, queue="mail") as queue:
        await queue.install()
        channel = await queue._core.run(queue._core.engine.bell())
        bell = open_bell(url, channel=channel, wanted=frozenset({"mail"}), pooler=False)
        assert isinstance(bell, ListeningBell)
        try:
            async with asyncio.timeout(10):
                await bell.hears.wait()
            assert await bell.wait(5)  # once it listens
            assert not await bell.wait(0.05)
            yield queue, bell
        finally:
            await bell.close()


async def sleep(queue: AsyncQueue, length: timedelta | None = MINUTE) -> None:
    await queue._core.run(queue._core.engine.sleep(("mail",), "sleeper", length))


async def quiet(bell: Bell) -> None:
    """Hears what is still under way."""
    while await bell.wait(0.2):
        pass


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_publish_rings_for_a_sleeper(place: Place, driver: str) -> None:
    @run_async
    async def rings() -> None:
        url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url
        async with ringing(place, url) as (queue, bell):
            await sleep(queue)
            await queue.publish(1)
            assert await bell.wait(5)

    rings()


@run_async
async def test_nobody_rings_for_who_is_awake_or_at_another_queue(place: Place) -> None:
    async with ringing(place, place.url) as (queue, bell):
        await queue.publish(1)
        assert not await bell.wait(0.2)
        await sleep(queue)
        await queue.publish(1, queue="another")
        assert not await bell.wait(0.2)
        await sleep(queue, None)
        await queue.publish(1)
        assert not await bell.wait(0.2)


@run_async
async def test_whatever_brings_work_rings(place: Place) -> None:
    async with ringing(place, place.url) as (queue, bell):
        await queue.channel("limited").limit(concurrency=1)
        await sleep(queue)
        for number in range(5):
            await queue.publish(number, channel="limited" if number == 0 else "free")
        assert await bell.wait(5)
        given, deferred, failed, freed, *_ = sorted(
            await queue.claim(limit=5), key=lambda m: m.channel == "limited"
        )
        await quiet(bell)
        await given.give_back()
        assert await bell.wait(5), "give back"
        await deferred.defer(timedelta(seconds=1))
        assert await bell.wait(5), "defer"
        await failed.fail("x")
        await queue.complete([freed])
        await quiet(bell)
        await queue.dead_letters.redrive(queue="mail")
        assert await bell.wait(5), "redrive"
        await queue.channel("free").pause()
        assert await bell.wait(5), "pause and resume"
        await queue.channel("free").limit(rate=5)
        assert await bell.wait(5), "limit"


@run_async
async def test_an_ended_lease_of_a_limited_channel_rings(place: Place) -> None:
    async with ringing(place, place.url) as (queue, bell):
        await queue.channel("limited").limit(concurrency=1)
        await queue.publish_many([1, 2], channel="limited")
        (message,) = await queue.claim(limit=2)
        await sleep(queue)
        await message.complete()
        assert await bell.wait(5)


@run_async
async def test_a_rolled_back_publish_leaves_no_ring(place: Place) -> None:
    async with ringing(place, place.url) as (queue, bell):
        await sleep(queue)
        connection = await psycopg.AsyncConnection.connect(place.url)
        async with connection:
            await queue.publish(1, connection=connection)
            assert not await bell.wait(0.2)
            await connection.rollback()
            assert not await bell.wait(0.2)
            await queue.publish(1, connection=connection)
            await connection.commit()
            assert await bell.wait(5)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_cut_line_is_built_anew(place: Place, driver: str) -> None:
    @run_async
    async def heals() -> None:
        url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url
        async with ringing(place, url) as (queue, bell):
            await sleep(queue)
            connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
            async with connection:
                cursor = await connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where query like '%pg_notify%' and pid <> pg_backend_pid() "
                    "and datname = current_database()"
                )
                assert (await cursor.fetchall()) == [(True,)]
            assert await bell.wait(15), "rings once it listens again"
            await queue.publish(1)
            assert await bell.wait(5)

    heals()
