"""Locks and bells: waiting for others without spinning, and hearing of them without asking."""

import asyncio
import fcntl
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import AsyncQueue, DatabaseFailed, Queue
from penstock.drivers import sqlite_turns
from penstock.drivers.choice import open_bell
from penstock.drivers.sqlite_bell import SqliteBell
from penstock.drivers.sqlite_patience import patiently
from penstock.drivers.sqlite_place import read_url
from penstock.drivers.sqlite_runner import SqliteRunner
from penstock.drivers.sqlite_turns import Turns
from tests.client.worlds import run_async


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        yield queue


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Somebody else's transaction."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")


def test_a_writer_waits_for_another_to_end(queue: Queue, path: Path) -> None:
    with write_lock(path):
        publisher = threading.Thread(target=queue.publish, args=[1])
        publisher.start()
        publisher.join(0.3)
        assert publisher.is_alive()
    publisher.join(10)
    assert len(queue.claim()) == 1


def test_readers_and_idle_claims_wait_for_nobody(queue: Queue, path: Path) -> None:
    with write_lock(path):
        assert not queue.claim()
        assert queue.numbers() == []
        assert queue.upkeep().ran
        assert queue.schema_version() > 0
        assert queue.settings().history == "all"


def test_who_waits_too_long_is_told_what_to_look_for(queue: Queue, url: str, path: Path) -> None:
    queue._core._runner = SqliteRunner(url, pool_size=1, wait=0.2)
    with write_lock(path), pytest.raises(DatabaseFailed, match="keeps a transaction open") as told:
        queue.publish(1)
    assert told.value.sqlstate == "SQLITE_BUSY"
    queue.publish(1)


def test_waiting_sleeps_longer_and_longer() -> None:
    tries = []

    def busy() -> None:
        tries.append(time.monotonic())
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    with pytest.raises(sqlite3.OperationalError):
        patiently(busy, 0.5)
    assert 10 < len(tries) < 500


def test_who_comes_lets_those_go_first_who_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(sqlite_turns, "time", SimpleNamespace(sleep=pauses.append))
    waiting, coming = Turns(str(path), 60), Turns(str(path), 60)
    with waiting._waiting():
        coming._let_others_first()
        coming._let_others_first()
    assert len(pauses) == 2 and max(pauses) < 0.01
    coming._let_others_first()
    assert len(pauses) == 2


def test_a_writer_that_waits_is_seen_and_then_no_more(queue: Queue, path: Path) -> None:
    with write_lock(path):
        publisher = threading.Thread(target=queue.publish, args=[1])
        publisher.start()
        assert eventually(lambda: somebody_waits(path))
    publisher.join(10)
    assert not somebody_waits(path)


def somebody_waits(path: Path) -> bool:
    with open(f"{path}-turns", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def eventually(truth: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if truth():
            return True
    return False


def test_other_errors_are_not_tried_again() -> None:
    tries = []

    def broken() -> None:
        tries.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(sqlite3.OperationalError, match="disk"):
        patiently(broken)
    assert len(tries) == 1


def test_an_idle_claim_writes_nothing(queue: Queue, path: Path) -> None:
    with closing(sqlite3.connect(path)) as eyes:
        before = eyes.execute("pragma data_version").fetchone()
        for _ in range(3):
            queue.claim(10)
            queue.upkeep()
        assert eyes.execute("pragma data_version").fetchone() == before


@run_async
async def test_an_async_client_can_be_used_again_after_close(url: str) -> None:
    queue = AsyncQueue(url)
    await queue.install()
    await queue.close()
    assert (await queue.publish(1)).id is not None
    await queue.close()


def bell_for(url: str) -> SqliteBell:
    bell = open_bell(url, channel=None, wanted=frozenset(), pooler=False)
    assert isinstance(bell, SqliteBell)
    return bell


async def quiet(bell: SqliteBell) -> None:
    """The first look cannot know whether something happened before."""
    while await bell.wait(0.01):
        pass


@pytest.mark.parametrize("place", ["file", "memory"])
def test_the_bell_rings_for_what_is_committed(place: str, url: str) -> None:
    @run_async
    async def listen() -> None:
        with Queue("sqlite://" if place == "memory" else url) as queue:
            queue.install()
            bell = bell_for("sqlite://" if place == "memory" else url)
            await quiet(bell)
            assert not await bell.wait(0.1)
            later = threading.Timer(0.2, queue.publish, [1])
            later.start()
            began = time.monotonic()
            assert await bell.wait(30)
            assert 0.1 < time.monotonic() - began < 20
            later.join()
            await quiet(bell)
            queue.claim(queues=["empty"])
            assert not await bell.wait(0.1)
            await bell.close()

    listen()


@run_async
async def test_the_bell_can_be_rung_from_inside(url: str) -> None:
    bell = bell_for(url)
    await quiet(bell)
    asyncio.get_running_loop().call_later(0.05, bell.ring)
    assert await bell.wait(30)
    await bell.close()


@run_async
async def test_an_idle_bell_costs_next_to_nothing(url: str) -> None:
    bell = bell_for(url)
    await quiet(bell)
    looks = 0
    version = bell._version

    def counted() -> int:
        nonlocal looks
        looks += 1
        return version()

    bell._version = counted  # type: ignore[method-assign]
    assert not await bell.wait(1.0)
    assert looks < 70
    await bell.close()


def test_two_files_do_not_ring_for_each_other(tmp_path: Path, url: str) -> None:
    @run_async
    async def listen() -> None:
        bell = bell_for(url)
        await quiet(bell)
        with Queue(f"sqlite:///{tmp_path}/other.db?synchronous=normal") as other:
            other.install()
            assert not await bell.wait(0.1)
        await bell.close()

    assert read_url(url).path.endswith("jobs.db")
    listen()


class Emptied(list[object]):
    """What a thread sees that is stopped just before it pops: another one was quicker."""

    def __bool__(self) -> bool:
        return True


def test_two_threads_do_not_take_the_same_connection(queue: Queue) -> None:
    queue._core._runner._idle = Emptied()  # type: ignore[attr-defined]
    assert queue.publish("x").status == "published"
