"""Waiting for the write lock, and being notified of commits."""

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

from laneway import AsyncQueue, Queue
from laneway.drivers.choice import open_notifier
from laneway.drivers.sqlite import write_queue
from laneway.drivers.sqlite.runner import SqliteNotifier, SqliteRunner
from laneway.drivers.sqlite.url import read_url
from laneway.drivers.sqlite.write_queue import WriteQueue, retry_while_busy
from laneway.errors import DatabaseFailed
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
        assert queue.stats() == []
        assert queue.upkeep().ran
        assert queue.schema_version() > 0
        assert queue.settings().history == "all"


def test_the_error_after_a_long_wait_says_what_to_do(queue: Queue, url: str, path: Path) -> None:
    queue.database._runner = SqliteRunner(url, pool_size=1, wait=0.2)
    with (
        write_lock(path),
        pytest.raises(DatabaseFailed, match="keeps a transaction open") as caught,
    ):
        queue.publish(1)
    assert caught.value.sqlstate == "SQLITE_BUSY"
    queue.publish(1)


def test_retries_wait_longer_and_longer() -> None:
    tries = []

    def busy() -> None:
        tries.append(time.monotonic())
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    with pytest.raises(sqlite3.OperationalError):
        retry_while_busy(busy, 0.5)
    assert 10 < len(tries) < 500


def test_a_new_writer_lets_waiting_processes_go_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(write_queue, "time", SimpleNamespace(sleep=pauses.append))
    waiting, coming = WriteQueue(str(path), 60), WriteQueue(str(path), 60)
    with waiting._waiting():
        coming._let_waiting_go_first()
        coming._let_waiting_go_first()
    assert len(pauses) == 2 and max(pauses) < 0.01
    coming._let_waiting_go_first()
    assert len(pauses) == 2


def test_others_can_see_that_a_writer_waits(queue: Queue, path: Path) -> None:
    with write_lock(path):
        publisher = threading.Thread(target=queue.publish, args=[1])
        publisher.start()
        assert eventually(lambda: somebody_waits(path))
    publisher.join(10)
    assert not somebody_waits(path)


def somebody_waits(path: Path) -> bool:
    with open(f"{path}-writers", "w") as file:
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


def test_other_errors_are_not_retried() -> None:
    tries = []

    def broken() -> None:
        tries.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(sqlite3.OperationalError, match="disk"):
        retry_while_busy(broken)
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


def notifier_for(url: str) -> SqliteNotifier:
    notifier = open_notifier(url, channel=None, wanted=frozenset(), pooler=False)
    assert isinstance(notifier, SqliteNotifier)
    return notifier


async def quiet(notifier: SqliteNotifier) -> None:
    """The first look cannot know whether something happened before."""
    while await notifier.wait(0.01):
        pass


@pytest.mark.parametrize("place", ["file", "memory"])
def test_the_notifier_sees_every_commit(place: str, url: str) -> None:
    @run_async
    async def listen() -> None:
        with Queue("sqlite://" if place == "memory" else url) as queue:
            queue.install()
            notifier = notifier_for("sqlite://" if place == "memory" else url)
            await quiet(notifier)
            assert not await notifier.wait(0.1)
            later = threading.Timer(0.2, queue.publish, [1])
            later.start()
            began = time.monotonic()
            assert await notifier.wait(30)
            assert 0.1 < time.monotonic() - began < 20
            later.join()
            queue.upkeep()  # counts what was published
            await quiet(notifier)
            queue.claim(queues=["empty"])
            assert not await notifier.wait(0.1)
            await notifier.close()

    listen()


@run_async
async def test_the_notifier_can_be_woken_in_its_own_process(url: str) -> None:
    notifier = notifier_for(url)
    await quiet(notifier)
    asyncio.get_running_loop().call_later(0.05, notifier.wake)
    assert await notifier.wait(30)
    await notifier.close()


@run_async
async def test_an_idle_notifier_costs_next_to_nothing(url: str) -> None:
    notifier = notifier_for(url)
    await quiet(notifier)
    looks = 0
    version = notifier._version

    def counted() -> int:
        nonlocal looks
        looks += 1
        return version()

    notifier._version = counted  # type: ignore[method-assign]
    assert not await notifier.wait(1.0)
    assert looks < 70
    await notifier.close()


def test_notifiers_of_two_files_are_independent(tmp_path: Path, url: str) -> None:
    @run_async
    async def listen() -> None:
        notifier = notifier_for(url)
        await quiet(notifier)
        with Queue(f"sqlite:///{tmp_path}/other.db?synchronous=normal") as other:
            other.install()
            assert not await notifier.wait(0.1)
        await notifier.close()

    assert read_url(url).path.endswith("jobs.db")
    listen()


class Emptied(list[object]):
    """What a thread sees that is stopped just before it pops: another one was quicker."""

    def __bool__(self) -> bool:
        return True


def test_two_threads_do_not_take_the_same_connection(queue: Queue) -> None:
    queue.database._runner._idle = Emptied()  # type: ignore[attr-defined]
    assert queue.publish("x").status == "published"
