"""A bulk redrive whose processes are killed again and again takes every letter exactly once."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from laneway import NewMessage, Queue
from tests.stores import STORES, Databases

_PROCESS = Path(__file__).with_name("bulk_process.py")
_KILLS = 4
_LOOKS = {"mysql": 3_000, "sqlite": 4_000}  # how many letters a look reads


def _dead(queue: Queue, count: int) -> list[int]:
    ids: list[int] = []
    for start in range(0, count, 10_000):
        part = [NewMessage(n, channel=f"c{n % 7}") for n in range(min(10_000, count - start))]
        queue.publish_many(part)
        while claim := queue.claim(5_000):
            queue.fail(claim, "broken")
            ids += [message.id for message in claim]
    return ids


def _killed_redrive(url: str, count: int) -> None:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        ids = _dead(queue, count)
        seen = queue.operations.preview(reason="broken")
        look = _LOOKS.get(url.partition(":")[0], 10_000)
        assert (seen.count, seen.or_more) == (min(count, look), count > look)
        operation = queue.operations.start("redrive", reason="broken", expected=seen.count)
        for _ in range(_KILLS):
            command = [sys.executable, str(_PROCESS), url, str(operation.id)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(random.uniform(0.05, 0.6))
                process.send_signal(signal.SIGKILL)
        between = queue.operations.get(operation.id)
        left = queue.dead_letters.count(queue="default", limit=10 * count)
        assert between.done + left == count, "the note and the letters are one transaction"
        ended = queue.operations.run(operation.id)
        total = None if seen.or_more else count
        assert (ended.state, ended.done, ended.total) == ("done", count, total)
        assert queue.dead_letters.count(reason="broken") == 0
        found: Counter[int] = Counter()
        while claim := queue.claim(5_000):
            found.update(message.id for message in claim)
            queue.complete(claim)
        assert found == Counter(ids)
        outcomes = Counter(entry.outcome for entry in queue.history(ids[0]))
        assert outcomes == {"failed": 1, "redriven": 1, "completed": 1}


_AGAIN = pytest.mark.repeats("the same on PostgreSQL")


@pytest.mark.parametrize(
    "store",
    ["PostgreSQL 18", pytest.param("SQLite", marks=_AGAIN), pytest.param("MariaDB", marks=_AGAIN)],
)
def test_a_bulk_redrive_survives_kills(store: str, request: pytest.FixtureRequest) -> None:
    databases: Databases = request.getfixturevalue(STORES[store].fixture)
    count = 20_000 if store == "PostgreSQL 18" else 6_000
    _killed_redrive(databases.create_database("bulk kills"), count)


@pytest.mark.timeout(600)
@pytest.mark.repeats("the same with five times as many letters")
def test_a_bulk_redrive_of_100_000_survives_kills(request: pytest.FixtureRequest) -> None:
    databases: Databases = request.getfixturevalue(STORES["PostgreSQL 18"].fixture)
    _killed_redrive(databases.create_database("bulk kills of many"), 100_000)
