"""`laneway worker … --spark` on a cluster of processes, of which one is killed in mid-batch."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway import Queue
from tests.place import Place
from tests.spark.conftest import LONG
from tests.spark.handled import at_once, look, make_ledger, note, ran

_COUNT = 60
_LIMIT = 2


@LONG
def test_a_lost_executors_messages_come_back(queue: Queue, place: Place) -> None:
    """Every message ends once, those of the dead are counted as tried, no limit is passed."""
    make_ledger(place)
    queue.channel("narrow").limit(concurrency=_LIMIT)
    queue.publish_many(
        [
            note(place, "recorded", "narrow" if n % 10 == 0 else f"c{n}", seconds=1.5)
            for n in range(_COUNT)
        ]
    )
    with command(place, "--master", "local-cluster[2,1,1024]", "--per-task", "4") as worker:
        wait_until(place, "select count(*) >= 6 from public.ran where schema = '{}'", worker)
        os.kill(executors(worker.pid)[0], signal.SIGKILL)
        wait_until(place, "select count(*) = 0 from message", worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    assert look(place, "select count(*) from history where terminal") == [(_COUNT,)]
    assert look(place, "select count(*) from history where outcome = 'completed'") == [(_COUNT,)]
    expired = look(place, "select message_id, attempt from history where outcome = 'expired'")
    assert expired
    assert sorted(ran(place, "message_id, attempt", "ended is null")) == sorted(expired)
    tried = ran(place, "count(*), count(distinct (message_id, attempt))")
    assert tried == [(_COUNT + len(expired), _COUNT + len(expired))]
    assert at_once(place, "narrow") <= _LIMIT
    assert look(place, "select count(*) from lease") == [(0,)]


@contextmanager
def command(place: Place, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    arguments = ["worker", "tests.spark.cluster_worker:worker", "--spark", *more]
    environment = {**os.environ, "TEST_URL": place.url, "TEST_SCHEMA": place.schema}
    worker = subprocess.Popen([sys.executable, "-m", "laneway.cli", *arguments], env=environment)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def wait_until(place: Place, text: str, worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while not look(place, text.format(place.schema))[0][0]:
        assert worker.poll() is None and time.monotonic() < deadline
        leases = "select count(*) from lease l join message m on m.id = l.message_id"
        assert look(place, f"{leases} where m.channel = 'narrow'")[0][0] <= _LIMIT
        time.sleep(0.05)


def executors(ancestor: int) -> list[int]:
    """The executors' JVMs below a process."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(status[1]), (folder / "cmdline").read_bytes()
        except OSError:
            continue
    return [
        pid
        for pid, (_, shown) in parents.items()
        if b"CoarseGrainedExecutorBackend" in shown
        and b"java" in shown.split(b"\0")[0]
        and is_below(pid, ancestor, {child: parent for child, (parent, _) in parents.items()})
    ]


def is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
