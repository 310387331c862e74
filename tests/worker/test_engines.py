"""The worker on the other databases, and the helpers for users' tests."""

import asyncio
import errno
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pymysql
import pytest

from laneway import AsyncQueue, Constant, Message, Queue, Worker
from laneway.drivers.sqlite.write_queue import WriteQueue
from laneway.errors import InvalidOption
from laneway.testing import assert_published, drain, drain_async
from tests.client.worlds import run_async
from tests.model.mysql import connect as connect_mysql
from tests.worker.test_worker import outcomes, until


def test_a_user_tests_his_handlers(laneway_queue: Queue) -> None:
    worker = Worker(laneway_queue)

    @worker.handler("order", retry=Constant(every=0, attempts=2))
    def order(payload: dict[str, int], message: Message) -> None:
        if payload["id"] < 0:
            raise ValueError("no such order")
        laneway_queue.publish(payload, kind="receipt", channel=message.channel)

    @worker.handler("receipt")
    def receipt(payload: dict[str, int]) -> None: ...

    laneway_queue.publish({"id": 1}, kind="order", channel="tenant")
    laneway_queue.publish({"id": -1}, kind="order")
    assert_published(laneway_queue, kind="order", payload={"id": 1}, count=1)
    assert_published(laneway_queue, kind="order", count=2)
    with pytest.raises(AssertionError, match="2 expected, 1 found"):
        assert_published(laneway_queue, channel="tenant", count=2)
    drain(worker)
    with pytest.raises(AssertionError, match="the queue is empty"):
        assert_published(laneway_queue)
    (letter,) = laneway_queue.dead_letters.list()
    assert letter.error == "no such order"


def test_messages_of_text_and_bytes_are_found_among_others(laneway_queue: Queue) -> None:
    laneway_queue.publish({"id": 1})
    laneway_queue.publish("just text")
    laneway_queue.publish(b"\xff")
    assert_published(laneway_queue, payload={"id": 1}, count=1)
    assert_published(laneway_queue, payload="just text", count=1)
    assert_published(laneway_queue, payload=b"\xff", count=1)


@run_async
async def test_on_sqlite_leases_are_extended_and_stops_are_clean(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with AsyncQueue(url, lease=timedelta(seconds=1)) as queue:
        await queue.install()
        worker = Worker(queue, concurrency=5)

        @worker.default_handler
        async def handle(payload: int) -> None:
            await asyncio.sleep(2.5)

        published = await queue.publish_many(range(5))
        await drain_async(worker)
        for one in published:
            assert await outcomes(queue, one.id) == ["completed"]


def test_on_sqlite_a_file_that_cannot_be_opened_for_a_while_is_ridden_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> Any:
        refused.append(path)
        raise OSError(errno.EMFILE, "too many open files")

    refused: list[str] = []

    @run_async
    async def check() -> None:
        async with AsyncQueue(f"sqlite:///{tmp_path / 'queue.db'}") as queue:
            await queue.install()
            worker = Worker(queue, max_messages=2)

            @worker.handler("greedy")
            async def greedy(payload: int) -> None:
                with monkeypatch.context() as there_are_none:
                    there_are_none.setattr(WriteQueue, "_file", staticmethod(refuse))
                    await until(lambda: len(refused) > 2)

            @worker.handler("modest")
            async def modest(payload: int) -> None: ...

            first = await queue.publish(1, kind="greedy")
            soon = timedelta(seconds=0.5)
            second = await queue.publish(1, kind="modest", delay=soon)
            await worker.serve()
            for published in (first, second):
                assert await outcomes(queue, published.id) == ["completed"]

    check()


def _on_sqlite(request: pytest.FixtureRequest, folder: Path) -> tuple[str, Callable[[], Any]]:
    return f"sqlite:///{folder}/jobs.db", lambda: sqlite3.connect(folder / "jobs.db")


def _on_mariadb(request: pytest.FixtureRequest, folder: Path) -> tuple[str, Callable[[], Any]]:
    url = request.getfixturevalue("mariadb").create_database("own transactions")
    return url, lambda: connect_mysql(url)


@pytest.mark.parametrize(
    ("place", "wanted"), [(_on_sqlite, sqlite3.Connection), (_on_mariadb, pymysql.Connection)]
)
def test_without_the_workers_transaction_a_handler_begins_its_own(
    request: pytest.FixtureRequest, tmp_path: Path, place: Any, wanted: type
) -> None:
    """The refusal comes before anything is claimed, and what it advises works."""
    url, connect = place(request, tmp_path)
    with Queue(url) as queue:
        queue.install()
        id = queue.publish(7).id or 0
        asking, following = Worker(queue), Worker(queue)

        def handle(payload: int, tx: Any) -> None: ...

        handle.__annotations__["tx"] = wanted
        asking.default_handler(handle)

        @following.default_handler
        def follow(payload: int, message: Message) -> None:
            mine = connect()
            mine.cursor().execute("create table if not exists effect (n int)")
            mine.cursor().execute("insert into effect values (7)")
            message.complete(connection=mine)
            mine.commit()
            mine.close()

        with pytest.raises(InvalidOption, match="complete the message on its connection"):
            drain(asking)
        assert ["worker's transaction" in problem for problem in asking.check()] == [True]
        assert queue.history(id) == []
        drain(following)
        assert [entry.outcome for entry in queue.history(id)] == ["completed"]
        cursor = connect().cursor()
        cursor.execute("select n from effect")
        assert [row[0] for row in cursor.fetchall()] == [7]
