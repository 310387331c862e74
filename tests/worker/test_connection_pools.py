"""Handlers that take connections from a pool of their application."""

from typing import Any

import psycopg_pool
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from laneway import Constant, Message, Queue, Worker
from tests.place import Place


def said(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if part in record.getMessage()]


def test_the_default_fits_into_the_default_pool_of_sqlalchemy(place: Place) -> None:
    pool: Any = create_engine(place.psycopg_url).pool
    with Queue(place.url, schema=place.schema) as queue:
        concurrency = Worker(queue)._options.concurrency
    assert concurrency <= pool.size() + pool._max_overflow


@pytest.mark.parametrize("is_async", [True, False])
def test_a_pool_that_is_too_small_is_named_once(
    place: Place, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    small: Any = {"pool_size": 1, "max_overflow": 2}
    engine = create_engine(place.psycopg_url, **small)
    loops = create_async_engine(place.asyncpg_url, **small)
    with engine.connect():
        pass  # not by a handler
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        worker = Worker(queue, concurrency=4)

        async def in_loop(payload: int) -> None:
            async with AsyncSession(loops) as session:
                await session.execute(text("select 1"))

        def in_thread(payload: int) -> None:
            with engine.connect() as connection:
                connection.execute(text("select 1"))

        worker.handler("use")(in_loop if is_async else in_thread)

        @worker.on_stop
        async def dispose() -> None:
            await loops.dispose()

        for _ in range(2):
            queue.publish(1, kind="use")
        worker.run(until_empty=True)
        (line,) = said(caplog, "SQLAlchemy pool")
        assert "up to 4 handlers at a time" in line and "holds 3 (pool_size=1" in line
        assert "concurrency=3" in line and "create_engine(pool_size=4)" in line
        caplog.clear()
        engine.dispose()
        engine = create_engine(place.psycopg_url, pool_size=4, max_overflow=0)
        worker = Worker(queue, concurrency=4)
        worker.handler("use")(in_thread)
        queue.publish(1, kind="use")
        worker.run(until_empty=True)
        assert not said(caplog, "SQLAlchemy pool")
    engine.dispose()


def test_the_pool_behind_the_sessions_that_a_worker_gives_is_not_meant(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        worker = Worker(queue, concurrency=50)

        @worker.handler
        async def use(payload: int, session: AsyncSession) -> None:
            await session.execute(text("select 1"))

        queue.publish(1, kind="use")
        worker.run(until_empty=True)
        assert queue.stats() == []
    assert not said(caplog, "SQLAlchemy pool")


@pytest.mark.parametrize("which", ["SQLAlchemy", "psycopg_pool"])
@pytest.mark.parametrize("ack", ["retry", "reject"])
def test_a_pool_without_a_free_connection_costs_no_attempt(
    place: Place, caplog: pytest.LogCaptureFixture, which: str, ack: Any
) -> None:
    """The other handlers of the worker have them all: no fault of the message."""
    engine = create_engine(place.psycopg_url, pool_size=1, max_overflow=0, pool_timeout=0.01)
    pool = psycopg_pool.ConnectionPool(place.url, min_size=1, max_size=1, timeout=0.5, open=False)
    pool.open(wait=True)
    take: Any = engine.connect if which == "SQLAlchemy" else lambda: pool.connection(timeout=0.01)
    others = [take()]
    taken = others[0].__enter__()
    attempts: list[int] = []
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        worker = Worker(queue, concurrency=1)

        @worker.handler(ack=ack, retry=None if ack == "reject" else Constant(every=0))
        def use(payload: int, message: Message) -> None:
            attempts.append(message.failures)
            with take():
                pass

        reported: list[str] = []

        @worker.on_error
        def report(message: Any, error: BaseException) -> None:
            reported.append(type(error).__name__)

        id = queue.publish(1, kind="use", max_attempts=1).id
        assert id is not None
        worker.run(until_empty=True)
        assert [entry.outcome for entry in queue.history(id)] == ["given_back"]
        assert len(reported) == 1
        (line,) = said(caplog, "no free connection")
        assert "put back for 5 s without counting the attempt" in line
        assert taken is not None
        others.pop().__exit__(None, None, None)
        queue.run_now([id])
        worker.run(until_empty=True)
        assert attempts == [0, 0]
        assert [e.outcome for e in queue.history(id)] == ["given_back", "completed"]
    pool.close()
    engine.dispose()
