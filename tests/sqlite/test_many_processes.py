"""Eight processes on one file, killed with SIGKILL at any time: nothing is lost, nothing is done
twice, and no process gets a "database is locked" error.

LANEWAY_CROWD_SECONDS (`make crowd`: a minute) sets how long it runs.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from laneway import Queue
from laneway.drivers.sqlite.url import read_url
from tests.model.sqlite import VIOLATIONS

SECONDS = float(os.environ.get("LANEWAY_CROWD_SECONDS", "8"))
MEMBERS = 8
KILLED = 4
ROOT = Path(__file__).parent.parent.parent


class Processes:
    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._started = 0
        self._processes = [self._start() for _ in range(MEMBERS)]

    def _start(self) -> subprocess.Popen[str]:
        self._started += 1
        ledger = self._folder / f"ledger {self._started}"
        code = [
            sys.executable,
            "-m",
            "tests.sqlite.client_process",
            self._url,
            str(ledger),
            str(SECONDS),
        ]
        return subprocess.Popen(code, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    def kill_one(self) -> None:
        """And another one takes its place."""
        number = random.randrange(len(self._processes))
        victim = self._processes[number]
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        self._processes[number] = self._start()

    def errors(self) -> list[str]:
        """What the survivors complained about."""
        told = [process.communicate(timeout=SECONDS + 60)[1] for process in self._processes]
        failed = [process.returncode != 0 for process in self._processes]
        return [text for text, bad in zip(told, failed, strict=True) if bad]

    def lines(self) -> list[list[str]]:
        """Of all ledgers; the last line of one who was killed may be half a line."""
        texts = [path.read_text() for path in self._folder.glob("ledger *")]
        return [line.split() for text in texts for line in text.split("\n")[:-1]]


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.repeats("chaos kills processes too")
def test_nothing_is_lost_and_nothing_happens_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crowd.db?synchronous=normal"
    with Queue(url) as queue:
        queue.install()
        queue.configure(backoff_initial=timedelta(0))
        eyes = sqlite3.connect(read_url(url).path)
        eyes.execute("create table effect (message_id integer primary key, payload text unique)")
        processes = Processes(url, tmp_path)
        for _ in range(max(KILLED, int(SECONDS / 2))):
            time.sleep(random.uniform(0.1, 1.9) * min(1, SECONDS / 8))
            processes.kill_one()
        assert processes.errors() == []
        drained = drain(queue)
        assert [row[0] for row in eyes.execute(VIOLATIONS)] == []
        settle_accounts(eyes, processes.lines(), drained)
        eyes.close()


def drain(queue: Queue) -> list[str]:
    """Completes all that is left; the leases of the killed ones run out first."""
    found = []
    while numbers := queue.stats():
        assert sum(n.dead for n in numbers) == 0, "nobody gave anything up"
        queue.upkeep()
        claim = queue.claim(1000, lease=timedelta(seconds=60))
        queue.complete(claim)
        found += [message.text() for message in claim]
        if not claim:
            time.sleep(0.05)
    return found


def settle_accounts(eyes: sqlite3.Connection, lines: list[list[str]], drained: list[str]) -> None:
    words: dict[str, list[list[str]]] = {"try": [], "ack": [], "done": []}
    for verb, *rest in lines:
        words[verb].append(rest)
    tried = {payload for rest in words["try"] for payload in rest}
    acknowledged = {int(id) for rest in words["ack"] for id in rest}
    ends = Counter(
        id for (id,) in eyes.execute("select message_id from laneway_history where terminal")
    )
    assert acknowledged, "the processes did nothing"
    assert acknowledged - set(ends) == set(), "lost"
    assert set(ends.values()) == {1}, "finished twice"
    done = Counter(payload for _, payload in words["done"]) + Counter(drained)
    assert set(done.values()) == {1}, "a payload was completed twice"
    assert set(done) <= tried, "a payload came from nowhere"
    assert {int(id) for id, _ in words["done"]} <= set(ends), "a completion vanished"
    effects = {payload for (payload,) in eyes.execute("select payload from effect")}
    assert effects <= tried and effects.isdisjoint(drained)
    (sound,) = eyes.execute("pragma integrity_check").fetchone()
    assert sound == "ok"
