"""Eight processes publish and consume; some are killed, and so is the server: nothing is lost,
nothing is done twice, and no deadlock reaches anybody.

PENSTOCK_CRASH_SECONDS (`make crash-mysql`) sets how long.
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

from penstock import Policy, Queue
from penstock.embedded_mariadb import OwnMariaDB
from tests.model.mysql import connect
from tests.mysql.crasher import LEASE
from tests.mysql.soundness import over_limit, violations

SECONDS = float(os.environ.get("PENSTOCK_CRASH_SECONDS", "8"))
PROCESSES = 8
SEED = int(os.environ.get("PENSTOCK_CRASH_SEED", "1"))

_numbers = count(1)


class Fleet:
    """Processes that are killed and replaced."""

    def __init__(self, url: str, folder: Path, until: float) -> None:
        self.url, self.folder, self.until = url, folder, until
        self.kills = 0
        self.running = [self._start() for _ in range(PROCESSES)]

    def kill_one(self, dice: random.Random) -> None:
        place = dice.randrange(len(self.running))
        self.running[place].kill()
        self.running[place].wait()
        self.kills += 1
        self.running[place] = self._start()

    def wait(self) -> list[int]:
        return [process.wait(60) for process in self.running]

    def ledger(self) -> list[list[str]]:
        files = self.folder.glob("*.ledger")
        # A process that was killed may have left half a line.
        texts = (file.read_text().rpartition("\n")[0] for file in files)
        return [line.split("\t") for text in texts for line in text.splitlines()]

    def _start(self) -> subprocess.Popen[bytes]:
        name = f"p{next(_numbers)}"
        arguments = [self.url, name, str(self.folder / f"{name}.ledger"), str(self.until)]
        return subprocess.Popen([sys.executable, "-m", "tests.mysql.crasher", *arguments])


@pytest.mark.timeout(SECONDS * 3 + 120)
def test_nothing_is_lost_or_done_twice(mariadb: OwnMariaDB, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with OwnMariaDB() as server:
        url = server.create_database("crashes")
        with Queue(url) as queue:
            queue.install()
            limits = {"one": Policy(concurrency=1), "slow": Policy(rate=50, burst=5)}
            queue.set_policies(limits)
        fleet = Fleet(url, tmp_path, time.time() + SECONDS)
        _wreak_havoc(fleet, server, dice)
        assert fleet.wait() == [0] * PROCESSES
        eyes = connect(url, autocommit=True)
        assert over_limit(eyes, "penstock") == []
        assert violations(eyes, "penstock") == []
        _drain(url)
        _settle_accounts(fleet, url)
        assert violations(eyes, "penstock") == []
        eyes.close()


def _wreak_havoc(fleet: Fleet, server: OwnMariaDB, dice: random.Random) -> None:
    restarts = [time.time() + SECONDS * part for part in (0.35, 0.7)]
    while time.time() < fleet.until - 0.5:
        time.sleep(dice.uniform(0.2, 0.6))
        if restarts and time.time() > restarts[0]:
            restarts.pop(0)
            server.kill()
            server.start()
        else:
            fleet.kill_one(dice)
    assert fleet.kills >= 5 and not restarts


def _drain(url: str) -> None:
    """What killed processes held comes back when its lease has run out."""
    with Queue(url, upkeep_every=timedelta(0)) as queue:
        end = time.monotonic() + 60
        while any(n.waiting + n.scheduled + n.leased for n in queue.numbers()):
            assert time.monotonic() < end, queue.numbers()
            queue.complete(queue.claim(1000))
            time.sleep(LEASE.total_seconds() / 50)


def _settle_accounts(fleet: Fleet, url: str) -> None:
    lines = fleet.ledger()
    assert [line for line in lines if line[0] == "error"] == []
    tried = {key for line in lines if line[0] == "tried" for key in line[1:]}
    acknowledged = {int(id) for line in lines if line[0] == "published" for id in line[1:]}
    completed = Counter(line[1] for line in lines if line[0] == "completed")
    assert [id for id, times in completed.items() if times > 1] == []
    with connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "select message_id, count(*) from penstock_history where terminal group by 1"
        )
        ends = dict(cursor.fetchall())
    assert set(ends.values()) == {1}
    assert {int(id) for id in completed} <= ends.keys()
    assert acknowledged <= ends.keys(), "acknowledged and lost"
    assert len(ends) <= len(tried)
    assert len(acknowledged) > 100 and len(completed) > 100
    keys = [line[2] for line in lines if line[0] == "completed"]
    assert len(set(keys)) == len(keys) and set(keys) <= tried
