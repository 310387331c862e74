"""A database that refuses outcomes: for a while, for good, or those of one message."""

import asyncio
import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from laneway import AsyncQueue, Worker
from laneway.drivers.sqlite.runner import AsyncSqliteRunner
from laneway.errors import ConnectionUnavailable, DatabaseFailed
from laneway.worker import settle
from laneway.worker.settle import is_final
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import client, outcomes, until

PASSING = (
    "23514 25006 40001 40P01 53100 55P03 57014 XX000 1205 1213 1290 1021 SQLITE_BUSY SQLITE_FULL"
)
FOR_GOOD = "22001 23505 42501 1062 1406 SQLITE_CONSTRAINT_UNIQUE SQLITE_TOOBIG"


def test_only_faults_of_the_data_are_final() -> None:
    assert not [code for code in PASSING.split() if is_final(DatabaseFailed("no", code))]
    assert not [code for code in FOR_GOOD.split() if not is_final(DatabaseFailed("no", code))]
    assert is_final(DatabaseFailed("it could not be sent"))
    assert not is_final(ConnectionUnavailable("away"))


class Refusing:
    """A trigger that refuses to end leases."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def begin(self, condition: str, state: str) -> None:
        name = sql.Identifier(self._place.schema)
        await self._say(
            sql.SQL(
                "create or replace function {}.refuse() returns trigger language plpgsql as $$"
                "begin if {} then raise exception 'refused' using errcode = {}; end if;"
                "return coalesce(new, old); end $$"
            ).format(name, sql.SQL(condition), sql.Literal(state)),
            sql.SQL(
                "create trigger refuse before delete or update on {}.lease "
                "for each row execute function {}.refuse()"
            ).format(name, name),
        )

    async def end(self) -> None:
        await self._say(
            sql.SQL("drop trigger refuse on {}.lease").format(sql.Identifier(self._place.schema))
        )

    async def _say(self, *statements: sql.Composed) -> None:
        async with await psycopg.AsyncConnection.connect(self._place.url) as connection:
            for statement in statements:
                await connection.execute(statement)


@run_async
async def test_outcomes_outlast_a_database_that_only_reads_for_a_while(place: Place) -> None:
    async with client(place, lease=timedelta(seconds=10)) as queue:
        worker = Worker(queue)
        runs: Counter[int] = Counter()
        go = asyncio.Event()

        @worker.default_handler
        async def handle(payload: int) -> None:
            runs[payload] += 1
            await go.wait()

        published = await queue.publish_many(range(5))
        refusing = Refusing(place)
        serving = asyncio.create_task(worker.serve(until_empty=True))
        await until(lambda: len(runs) == 5)
        await refusing.begin("true", "25006")
        go.set()
        await asyncio.sleep(2)
        await refusing.end()
        await asyncio.wait_for(serving, 30)
        assert set(runs.values()) == {1}
        for one in published:
            assert await outcomes(queue, one.id) == ["completed"]


@run_async
async def test_one_that_is_refused_again_and_again_does_not_hold_up_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "_REFUSAL_TIMEOUT", 1.0)
    async with client(place, lease=timedelta(seconds=3)) as queue:
        worker = Worker(queue, max_messages=5)
        published = await queue.publish_many(range(5))
        poison = published[2].id
        await Refusing(place).begin(f"tg_op = 'DELETE' and old.message_id = {poison}", "P0001")

        @worker.default_handler
        async def handle(payload: int) -> None: ...

        await asyncio.wait_for(worker.serve(), 30)
        for one in published:
            assert await outcomes(queue, one.id) == ([] if one.id == poison else ["completed"])


@run_async
async def test_on_sqlite_outcomes_outlast_another_programs_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AsyncSqliteRunner.__init__, "__kwdefaults__", {"wait": 0.3})
    file = tmp_path / "jobs.db"
    async with AsyncQueue(f"sqlite:///{file}", lease=timedelta(seconds=15)) as queue:
        await queue.install()
        worker = Worker(queue)
        runs = []
        go = asyncio.Event()

        @worker.default_handler
        async def handle(payload: int) -> None:
            runs.append(payload)
            await go.wait()

        published = await queue.publish(1)
        serving = asyncio.create_task(worker.serve(until_empty=True))
        await until(lambda: bool(runs))
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("begin immediate")
        go.set()
        await asyncio.sleep(2)
        other.execute("rollback")
        other.close()
        await asyncio.wait_for(serving, 30)
        assert runs == [1]
        assert await outcomes(queue, published.id) == ["completed"]
