"""Somebody keeps a channel locked: claims go on with the others, then they are busy."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from laneway import AsyncQueue, ClaimStatus, NewMessage, Queue, Worker
from laneway.drivers.mysql.url import connect_options
from laneway.engines.mysql.base import pair_id
from laneway.engines.sqlite.engine import SqliteEngine
from laneway.errors import DatabaseFailed
from tests.worker.test_worker import until

SERVERS = {"postgresql": "server", "mysql": "mariadb"}
HANGS = 60.0  # seconds

_numbers = count(1)


@pytest.fixture(params=SERVERS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(dialect: str, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue(SERVERS[dialect])
    made: str = server.create_database(f"locked_{next(_numbers)}")
    return made


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        yield queue


@contextmanager
def kept(url: str, dialect: str, statement: str, *values: Any) -> Iterator[None]:
    """A transaction that has run the statement stays open."""
    other: Any
    if dialect == "postgresql":
        other = psycopg.connect(url)
    else:
        other = pymysql.connect(**connect_options(url), database=url.rsplit("/", 1)[1])
    try:
        other.cursor().execute(statement, values)
        yield
    finally:
        other.rollback()
        other.close()


def locked(url: str, dialect: str) -> Any:
    if dialect == "postgresql":
        lock = "select from laneway.channel where name = 'kept' for update"
        return kept(url, dialect, lock)
    lock = "select 1 from laneway_channel where id = %s for update"  # without an index: all rows
    return kept(url, dialect, lock, pair_id(b"default", b"kept"))


def new_policy(url: str, dialect: str) -> Any:
    """An operator's policy for a channel that nobody has used yet, not committed."""
    if dialect == "postgresql":
        return kept(
            url,
            dialect,
            "select laneway.set_policy_v1('default', array['kept'], array[1]::bigint[], "
            "array[null]::float[], array[null]::bigint[], array[null]::bigint[], "
            "array[1]::float[])",
        )
    insert = "insert into laneway_channel (id, queue, name, concurrency) values (%s, %s, %s, 1)"
    return kept(url, dialect, insert, pair_id(b"default", b"kept"), b"default", b"kept")


def test_a_channel_that_somebody_keeps_locked(queue: Queue, url: str, dialect: str) -> None:
    for channel in ("kept", "free") * 3:
        queue.publish(1, channel=channel)
    queue.complete(queue.claim(4))  # that creates their rows
    with locked(url, dialect):
        queue.publish_many([NewMessage(2, channel=channel) for channel in ("kept", "free")])
        while claim := queue.claim():
            assert {message.channel for message in claim} == {"free"}
        assert claim.status is ClaimStatus.BUSY
    assert {message.channel for message in queue.claim(10)} == {"kept"}


def test_a_policy_that_is_not_committed(queue: Queue, url: str, dialect: str) -> None:
    """Channels that are new as well are claimed from, each by itself."""
    queue.publish(0, channel="old")
    queue.complete(queue.claim())
    with new_policy(url, dialect):
        channels = ("kept", "old", "new 1", "new 2")
        queue.publish_many([NewMessage(1, channel=channel) for channel in channels])
        found = set()
        while claim := queue.claim(10):
            found |= {message.channel for message in claim}
        assert found == {"old", "new 1", "new 2"}
        assert claim.status is ClaimStatus.BUSY
    assert {message.channel for message in queue.claim(10)} == {"kept"}


@pytest.mark.repeats("the claims of the tests above, by a worker")
@pytest.mark.parametrize("holds", [locked, new_policy])
def test_a_worker_goes_on(
    queue: Queue, url: str, dialect: str, holds: Any, caplog: pytest.LogCaptureFixture
) -> None:
    if holds is locked:
        queue.publish(0, channel="kept")
        queue.complete(queue.claim())
    caplog.set_level(logging.WARNING, "laneway")

    async def main() -> list[str]:
        seen: list[str] = []
        async with AsyncQueue(url) as client:
            worker = Worker(client)

            @worker.default_handler
            async def handle(payload: str) -> None:
                seen.append(payload)

            with holds(url, dialect):
                await client.publish("kept", channel="kept")
                serving = asyncio.create_task(worker.serve())
                for name in ("a", "b", "c"):
                    await client.publish(name, channel=name)
                    await until(lambda name=name: name in seen, HANGS)  # type: ignore[misc]
                assert "kept" not in seen
            await until(lambda: "kept" in seen, HANGS)
            worker.stop()
            await serving
        return seen

    assert len(asyncio.run(main())) == 4
    assert not [r for r in caplog.records if "claim failed" in r.getMessage()]


@pytest.mark.parametrize("state", ["55P03", "1205", "SQLITE_BUSY", "40001"])
def test_a_claim_that_waited_in_vain_is_busy(
    tmp_path: Path,
    state: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker's too: it claims again at once, and no error is told. Any other state is one."""
    verbs: Any = type(SqliteEngine().claims)
    claim, answers = verbs.claim, iter([DatabaseFailed("locked", state)])

    def fail_first(*args: Any) -> Any:
        if error := next(answers, None):
            raise error
        return (yield from claim(*args))

    monkeypatch.setattr(verbs, "claim", fail_first)

    async def main() -> list[str]:
        seen: list[str] = []
        async with AsyncQueue(f"sqlite:///{tmp_path / 'jobs.db'}") as client:
            await client.install()
            await client.publish("a")
            worker = Worker(client)

            @worker.default_handler
            async def handle(payload: str) -> None:
                seen.append(payload)

            await worker.serve(until_empty=True)
        return seen

    assert asyncio.run(main()) == ["a"]
    assert next(answers, None) is None
    failed = [record for record in caplog.records if "claim failed" in record.getMessage()]
    assert bool(failed) == (state == "40001")
    assert ("row lock held by another session: locked" in caplog.text) == (state != "40001")
