"""Handlers in the worker's transaction: effects and completion commit together, or not at all."""

import asyncio
import sqlite3
import time
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session

from laneway import AsyncMessage, AsyncQueue, Constant, Defer, Message, Queue, Throttled, Worker
from laneway.drivers.psycopg.aio import AsyncPsycopgRunner
from laneway.drivers.psycopg.sync import PsycopgRunner
from laneway.errors import InvalidOption
from laneway.worker.execute import executor
from laneway.worker.run import runtime
from tests.client.worlds import run_async
from tests.place import Place
from tests.worker.test_worker import outcomes

RETRY = Constant(every=0)


async def effects(place: Place, *, create: bool = False) -> list[int]:
    connection = await psycopg.AsyncConnection.connect(place.url, autocommit=True)
    async with connection:
        if create:
            await connection.execute("drop table if exists effect")
            await connection.execute("create table effect (id int)")
        return [row[0] for row in await (await connection.execute("table effect")).fetchall()]


def again(attempt: int) -> object:
    """Fails once, goes on once, ends."""
    if attempt == 1:
        raise ValueError("after the effect")
    return Defer(state=1) if attempt == 2 else None


def with_psycopg(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage) -> object:
        await tx.execute("insert into effect values (%s)", [message.attempt])
        return again(message.attempt)


def with_asyncpg(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: asyncpg.Connection, message: AsyncMessage) -> object:
        await tx.execute("insert into effect values ($1)", message.attempt)
        return again(message.attempt)


def with_thread(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    def handle(payload: int, tx: psycopg.Connection, message: Message) -> object:
        tx.execute("insert into effect values (%s)", [message.attempt])
        return again(message.attempt)


class OwnSession(AsyncSession):
    """As SQLModel has one."""


def with_async_session(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: AsyncSession, message: AsyncMessage) -> object:
        await tx.execute(INSERT, {"id": message.attempt})
        return again(message.attempt)


def with_own_session(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: OwnSession, message: AsyncMessage) -> object:
        assert isinstance(tx, OwnSession)
        await tx.execute(INSERT, {"id": message.attempt})
        return again(message.attempt)


def with_async_engine(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    async def handle(payload: int, tx: AsyncConnection, message: AsyncMessage) -> object:
        await tx.execute(INSERT, {"id": message.attempt})
        return again(message.attempt)


def with_session(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    def handle(payload: int, tx: Session, message: Message) -> object:
        tx.execute(INSERT, {"id": message.attempt})
        return again(message.attempt)


def with_engine(worker: Worker) -> None:
    @worker.default_handler(retry=RETRY)
    def handle(payload: int, tx: Connection, message: Message) -> object:
        tx.execute(INSERT, {"id": message.attempt})
        return again(message.attempt)


INSERT = text("insert into effect values (:id)")
WORLDS = {
    "psycopg": with_psycopg,
    "asyncpg": with_asyncpg,
    "thread": with_thread,
    "AsyncSession on asyncpg": with_async_session,
    "AsyncSession on psycopg": with_async_session,
    "AsyncConnection on asyncpg": with_async_engine,
    "AsyncConnection on psycopg": with_async_engine,
    "a session class of one's own on asyncpg": with_own_session,
    "Session": with_session,
    "Session in a thread beside asyncpg": with_session,
    "thread beside asyncpg": with_thread,
    "Connection": with_engine,
}


@pytest.mark.parametrize("world", WORLDS)
def test_effect_and_completion_are_one(place: Place, world: str) -> None:
    @run_async
    async def check() -> None:
        await effects(place, create=True)
        url = place.asyncpg_url if world.endswith("asyncpg") else place.url
        async with AsyncQueue(url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            WORLDS[world](worker)
            published = await queue.publish(1)
            await worker.serve(until_empty=True)
            assert await outcomes(queue, published.id) == ["retried", "deferred", "completed"]
            assert await effects(place) == [2, 3]

    check()


@pytest.mark.parametrize("is_async", [True, False])
def test_a_session_is_committed_by_the_worker_alone(place: Place, is_async: bool) -> None:
    """A commit of the handler's own would keep its effect though the message is not completed;
    savepoints are its own."""
    asyncio.run(effects(place, create=True))
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        worker = Worker(queue)

        @worker.handler("async", ack="reject")
        async def loop(commits: bool, tx: AsyncSession) -> None:
            async with tx.begin_nested():
                await tx.execute(INSERT, {"id": 1})
            if commits:
                await tx.commit()

        @worker.handler("sync", ack="reject")
        def thread(commits: bool, tx: Session) -> None:
            with tx.begin_nested():
                tx.execute(INSERT, {"id": 1})
            if commits:
                tx.commit()

        kind = "async" if is_async else "sync"
        for commits in (True, False):
            queue.publish(commits, kind=kind)
        worker.run(until_empty=True)
        (letter,) = queue.dead_letters.list()
        assert "leave commit() out" in str(letter.error)
        assert asyncio.run(effects(place)) == [1]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_session_is_rolled_back_with_a_lease_that_is_lost(place: Place, is_async: bool) -> None:
    asyncio.run(effects(place, create=True))
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        worker = Worker(queue, max_messages=1)

        @worker.handler("async")
        async def loop(payload: int, tx: AsyncSession, message: AsyncMessage) -> None:
            await tx.execute(INSERT, {"id": 1})
            await asyncio.to_thread(queue.give_back, [message])

        @worker.handler("sync")
        def thread(payload: int, tx: Session, message: Message) -> None:
            tx.execute(INSERT, {"id": 1})
            queue.give_back([message])

        queue.publish(1, kind="async" if is_async else "sync")
        worker.run()
        assert asyncio.run(effects(place)) == []
        assert queue.stats()[0].waiting == 1


@run_async
async def test_a_lost_lease_takes_the_effects_along(place: Place) -> None:
    await effects(place, create=True)
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        worker = Worker(queue, max_messages=1)

        @worker.default_handler
        async def handle(payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage) -> None:
            await tx.execute("insert into effect values (1)")
            # Somebody else settles it, as if our lease had run out.
            await queue.give_back([message])

        await queue.publish(1)
        await worker.serve()
        assert await effects(place) == []
        (stats,) = await queue.stats()
        assert stats.waiting == 1


def _asking(wanted: Any, is_async: bool) -> Any:
    async def loop(payload: int, tx: wanted) -> None:
        raise AssertionError("not reached")

    def thread(payload: int, tx: wanted) -> None:
        raise AssertionError("not reached")

    return loop if is_async else thread


@pytest.mark.parametrize(
    ("driver", "wanted", "is_async", "says"),
    [
        ("psycopg", asyncpg.Connection, True, "has psycopg.AsyncConnection or AsyncSession"),
        ("asyncpg", psycopg.AsyncConnection, True, "has asyncpg.Connection or AsyncSession"),
        ("psycopg", async_scoped_session, True, "or AsyncSession or AsyncConnection of SQLAl"),
        ("psycopg", sqlite3.Connection, False, "has psycopg.Connection or Session or Conn"),
        ("asyncpg", sqlite3.Connection, False, "has psycopg.Connection or Session or Conn"),
    ],
)
def test_what_the_worker_cannot_lend_is_refused_before_a_claim(
    place: Place, driver: str, wanted: Any, is_async: bool, says: str
) -> None:
    url = place.asyncpg_url if driver == "asyncpg" else place.url
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        id = queue.publish(1, kind="work").id
        worker = Worker(AsyncQueue(url, schema=place.schema))
        worker.handler("work")(_asking(wanted, is_async))
        assert [problem for problem in worker.check() if says in problem]
        with pytest.raises(InvalidOption, match=says):
            worker.run(until_empty=True)
        assert queue.history(id or 0) == [] and queue.stats()[0].waiting == 1


@pytest.mark.parametrize(
    ("wanted", "is_async"),
    [(Session, True), (psycopg.Connection, True), (AsyncSession, False), (asyncpg.Connection, 0)],
)
def test_a_transaction_of_the_other_world_is_refused_at_registration(
    place: Place, wanted: Any, is_async: bool
) -> None:
    worker = Worker(Queue(place.url, schema=place.schema))
    with pytest.raises(InvalidOption, match=r"'tx' is annotated as .*: annotate it as a"):
        worker.handler("work")(_asking(wanted, is_async))


def _slow(worker: Worker) -> None:
    @worker.handler("async", ack="reject")
    async def in_loop(seconds: float, tx: psycopg.AsyncConnection) -> None:
        await asyncio.sleep(seconds)

    @worker.handler("thread", ack="reject")
    def in_thread(seconds: float, tx: psycopg.Connection) -> None:
        time.sleep(seconds)


@pytest.mark.parametrize("world", ["async", "thread"])
def test_waiting_for_a_place_among_transactions_fails_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setattr(runtime, "_MAX_TRANSACTIONS", 1)
    for runner in (PsycopgRunner, AsyncPsycopgRunner):
        defaults = runner.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "wait", 1.0)

    @run_async
    async def check() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            _slow(worker)
            ids = [(await queue.publish(0.8, kind=world)).id for _ in range(4)]
            await worker.serve(until_empty=True)
            for id in ids:
                assert await outcomes(queue, id) == ["completed"]

    check()


@pytest.mark.parametrize("world", ["async", "thread"])
def test_without_a_connection_the_message_is_given_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    runner = PsycopgRunner if world == "thread" else AsyncPsycopgRunner
    begin, refusals = runner.transaction, [psycopg.OperationalError("too many connections")]

    def transaction(self: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return begin(self)

    monkeypatch.setattr(runner, "transaction", transaction)
    monkeypatch.setattr(executor, "_NO_TRANSACTION_DELAY", timedelta(0))

    @run_async
    async def check() -> None:
        async with AsyncQueue(place.url, schema=place.schema) as queue:
            await queue.install()
            worker = Worker(queue)
            _slow(worker)
            published = await queue.publish(0, kind=world)
            await worker.serve(until_empty=True)
            assert await outcomes(queue, published.id) == ["given_back", "completed"]

    check()


@run_async
async def test_a_throttled_handler_rolls_back(place: Place) -> None:
    async with AsyncQueue(place.url, schema=place.schema) as queue:
        await queue.install()
        await effects(place, create=True)
        worker = Worker(queue)
        calls: list[int] = []

        @worker.default_handler()
        async def handle(payload: int, tx: psycopg.AsyncConnection) -> object:
            calls.append(payload)
            await tx.execute("insert into effect values (%s)", [len(calls)])
            return Throttled(retry_after=3600) if len(calls) == 1 else None

        published = await queue.publish(1)
        await worker.serve(until_empty=True)
        assert await effects(place) == []
        await queue.channel("default").resume()
        await worker.serve(until_empty=True)
        assert await effects(place) == [2]
        assert (await outcomes(queue, published.id))[-1] == "completed"
