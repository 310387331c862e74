"""Eight processes publish and consume. Some are killed, and so is the server: nothing is lost,
nothing is done twice, and no caller sees a deadlock.

LANEWAY_CRASH_SECONDS (`make crash-mysql`) sets how long.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from laneway import Policy, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from tests.model.mysql import connect
from tests.mysql.crash_process import LEASE
from tests.mysql.invariants import over_limit, violations

SECONDS = float(os.environ.get("LANEWAY_CRASH_SECONDS", "8"))
PROCESSES = 8
SEED = int(os.environ.get("LANEWAY_CRASH_SEED", "1"))

_numbers = count(1)


class Processes:
    """Processes that are killed and replaced."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.end = url, folder, folder / "end"
        self.kills = 0
        self.running = [self._start() for _ in range(PROCESSES)]

    def kill_one(self, rng: random.Random) -> None:
        number = rng.randrange(len(self.running))
        self.running[number].kill()
        self.running[number].wait()
        self.kills += 1
        self.running[number] = self._start()

    def wait(self) -> list[int]:
        self.end.touch()
        return [process.wait(60) for process in self.running]

    def log_lines(self) -> list[list[str]]:
        files = self.folder.glob("*.log")
        # A killed process may have written half a line.
        texts = (file.read_text().rpartition("\n")[0] for file in files)
        return [line.split("\t") for text in texts for line in text.splitlines()]

    def did_enough(self) -> bool:
        done = Counter(line[0] for line in self.log_lines())
        return self.kills >= 5 and done["published"] > 50 and done["completed"] > 100

    def _start(self) -> subprocess.Popen[bytes]:
        name = f"p{next(_numbers)}"
        arguments = [self.url, name, str(self.folder / f"{name}.log"), str(self.end)]
        return subprocess.Popen([sys.executable, "-m", "tests.mysql.crash_process", *arguments])


@pytest.mark.timeout(SECONDS * 3 + 120)
@pytest.mark.repeats("chaos kills processes and servers too")
def test_nothing_is_lost_or_done_twice(mariadb: EmbeddedMariaDB, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with EmbeddedMariaDB() as server:
        url = server.create_database("crashes")
        with Queue(url) as queue:
            queue.install()
            limits = {"one": Policy(concurrency=1), "slow": Policy(rate=50, burst=5)}
            queue.set_policies(limits)
        processes = Processes(url, tmp_path)
        _kill_at_random(processes, server, rng)
        assert processes.wait() == [0] * PROCESSES
        observer = connect(url, autocommit=True)
        assert over_limit(observer, "laneway") == []
        assert violations(observer, "laneway") == []
        _drain(url)
        _check_results(processes, url)
        assert violations(observer, "laneway") == []
        observer.close()


def _kill_at_random(processes: Processes, server: EmbeddedMariaDB, rng: random.Random) -> None:
    """For some seconds, and on a slow machine until enough was done between the kills."""
    begun = time.monotonic()
    restarts = [begun + SECONDS * part for part in (0.35, 0.7)]
    while restarts or time.monotonic() < begun + SECONDS or not processes.did_enough():
        time.sleep(rng.uniform(0.2, 0.6))
        if restarts and time.monotonic() > restarts[0]:
            restarts.pop(0)
            server.kill()
            server.start()
        elif processes.kills < SECONDS * 2:
            processes.kill_one(rng)


def _drain(url: str) -> None:
    """Messages of killed processes come back when their leases have run out."""
    with Queue(url, upkeep_every=timedelta(0)) as queue:
        end = time.monotonic() + 60
        while any(n.waiting + n.scheduled + n.leased for n in queue.stats()):
            assert time.monotonic() < end, queue.stats()
            queue.complete(queue.claim(1000))
            time.sleep(LEASE.total_seconds() / 50)


def _check_results(processes: Processes, url: str) -> None:
    lines = processes.log_lines()
    assert [line for line in lines if line[0] == "error"] == []
    tried = {key for line in lines if line[0] == "tried" for key in line[1:]}
    acknowledged = {int(id) for line in lines if line[0] == "published" for id in line[1:]}
    completed = Counter(line[1] for line in lines if line[0] == "completed")
    assert [id for id, times in completed.items() if times > 1] == []
    with connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("select message_id, count(*) from laneway_history where terminal group by 1")
        ends = dict(cursor.fetchall())
    assert set(ends.values()) == {1}
    assert {int(id) for id in completed} <= ends.keys()
    assert acknowledged <= ends.keys(), "acknowledged and lost"
    assert len(ends) <= len(tried)
    keys = [line[2] for line in lines if line[0] == "completed"]
    assert len(set(keys)) == len(keys) and set(keys) <= tried
