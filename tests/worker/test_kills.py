"""Workers that are killed and stopped: nothing is lost, and a lost lease writes nothing."""

import random
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from tests.place import Place
from tests.worker.harness import (
    WorkerProcesses,
    eventually,
    is_alive,
    kill,
    stop,
    stop_group,
    worker_processes,
)

LEASE = 2.0
BUSY = 15.0  # seconds that a busy machine may add, to start a process for one


def _quick_retries(workers: WorkerProcesses) -> None:
    workers.queue.configure(backoff_initial=timedelta(0), backoff_max=timedelta(0))


def test_killed_in_the_middle_of_its_handlers(place: Place, tmp_path: Path) -> None:
    with worker_processes(place, tmp_path) as workers:
        _quick_retries(workers)
        workers.queue.channel("limited").limit(concurrency=3)
        ids = [p.id or 0 for p in workers.queue.publish_many(range(20), channel="limited")]
        ids += [p.id or 0 for p in workers.queue.publish_many(range(20), channel="free")]
        first = workers.start("slow", seconds=60, lease=LEASE, concurrency=30)
        eventually(lambda: len(workers.lines("start")) == 23)
        time.sleep(LEASE)  # the heartbeat extends them
        assert workers.queue.channel("limited").stats().leased == 3
        heartbeats = [child.pid for child in psutil.Process(first.pid).children()]
        held = set(workers.counts("start"))
        kill(first)
        killed_at = time.monotonic()
        second = workers.start("slow", seconds=0.01, lease=LEASE, concurrency=30)
        eventually(workers.is_empty)
        again = [line for line in workers.lines("start") if line.id in held and line.at > killed_at]
        assert {line.id for line in again} == held
        # Those of the limited channel come in turn; the first of all shows when leases ran out.
        assert min(line.at for line in again) - killed_at < LEASE + 1 + BUSY
        for id in ids:
            assert workers.outcomes(id)[-1] == "completed"
            assert workers.outcomes(id).count("completed") == 1
        eventually(lambda: not any(is_alive(pid) for pid in heartbeats))
        assert stop(second) == 0


def _let_it_do(workers: WorkerProcesses, messages: int) -> None:
    before = workers.queue.stats()
    if before:
        waiting = before[0].waiting - messages
        eventually(lambda: workers.is_empty() or workers.queue.stats()[0].waiting < waiting)


@pytest.mark.repeats("killed once in the other tests here")
def test_killed_again_and_again_in_the_middle_of_its_writes(place: Place, tmp_path: Path) -> None:
    with worker_processes(place, tmp_path) as workers:
        _quick_retries(workers)
        ids = []
        for _ in range(8):
            ids += [p.id or 0 for p in workers.queue.publish_many(range(2500))]
        chance = random.Random(7)
        for _ in range(5):
            worker = workers.start("quick", lease=LEASE)
            _let_it_do(workers, 200)
            time.sleep(chance.uniform(0, 0.1))
            kill(worker)
        last = workers.start("quick", lease=LEASE)
        eventually(workers.is_empty)
        assert stop(last) == 0
        for id in chance.sample(ids, 500):
            assert workers.outcomes(id).count("completed") == 1
        assert not workers.queue.dead_letters.list()


def test_stopped_past_the_lease_and_continued(place: Place, tmp_path: Path) -> None:
    with worker_processes(place, tmp_path) as workers:
        _quick_retries(workers)
        ids = [p.id or 0 for p in workers.queue.publish_many(range(10))]
        first = workers.start("slow", seconds=6, lease=LEASE)
        eventually(lambda: len(workers.lines("start")) == 10)
        first.send_signal(signal.SIGSTOP)
        second = workers.start("slow", seconds=0.01, lease=LEASE)
        waited = eventually(workers.is_empty)
        assert waited < LEASE + 1 + BUSY
        first.send_signal(signal.SIGCONT)
        eventually(lambda: len(workers.lines("cancelled")) == 10)
        assert stop(first) == 0
        assert stop(second) == 0
        fences = {line.id: line.fence for line in workers.lines("end")}
        assert set(fences) == set(ids), "each ended once, and not by the one that was stopped"
        for id in ids:
            history = workers.queue.history(id)
            completed = [entry for entry in history if entry.outcome == "completed"]
            assert [entry.fence for entry in completed] == [fences[id]]


@pytest.mark.repeats("stopped with other handlers in the tests here")
def test_stopped_with_blocking_handlers_and_continued(place: Place, tmp_path: Path) -> None:
    """A thread cannot be cancelled: it ends late, sees that it is lost, and is not believed."""
    with worker_processes(place, tmp_path) as workers:
        _quick_retries(workers)
        ids = [p.id or 0 for p in workers.queue.publish_many(range(5))]
        first = workers.start("blocking", seconds=5, lease=LEASE)
        eventually(lambda: len(workers.lines("start")) == 5)
        first.send_signal(signal.SIGSTOP)
        second = workers.start("blocking", seconds=0.01, lease=LEASE)
        eventually(workers.is_empty)
        first.send_signal(signal.SIGCONT)
        # Their sleep is over by then; they may end before the pulse finds out.
        eventually(lambda: len(workers.lines("lost")) + len(workers.lines("end")) == 10)
        assert stop(first) == 0
        assert stop(second) == 0
        for id in ids:
            assert [o for o in workers.outcomes(id) if o == "completed"] == ["completed"]
            assert max(line.fence for line in workers.lines("start") if line.id == id) == next(
                e.fence for e in workers.queue.history(id) if e.outcome == "completed"
            )


@pytest.mark.repeats("stopped in the other tests here")
def test_stopped_while_messages_wait_for_a_process(place: Place, tmp_path: Path) -> None:
    """The process comes free while the worker is stopped; the next message is not its own then."""
    with worker_processes(place, tmp_path) as workers:
        _quick_retries(workers)
        workers.queue.publish_many([3.0, 3.0])
        first = workers.start("in_own_process", lease=LEASE)
        eventually(lambda: len(workers.lines("start")) == 1)
        first.send_signal(signal.SIGSTOP)
        second = workers.start("in_own_process", lease=LEASE)
        eventually(lambda: len(workers.lines("start")) == 3)
        first.send_signal(signal.SIGCONT)
        eventually(workers.is_empty)
        assert stop(first) == 0
        assert stop(second) == 0
        assert len(workers.lines("start")) == 3


def _is_starting_a_process(worker: subprocess.Popen[bytes]) -> bool:
    children = psutil.Process(worker.pid).children()
    return any("spawn_main" in " ".join(child.cmdline()) for child in children)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        signal.SIGHUP,
        pytest.param(signal.SIGQUIT, marks=pytest.mark.repeats("tested with SIGHUP")),
        pytest.param(signal.SIGINT, marks=pytest.mark.repeats("tested with SIGTERM")),
    ],
)
def test_a_signal_for_the_group_does_not_kill_a_process_that_starts(
    place: Place, tmp_path: Path, number: signal.Signals
) -> None:
    with worker_processes(place, tmp_path) as workers:
        id = workers.queue.publish(0.1).id or 0
        worker = workers.start("in_own_process")
        eventually(lambda: _is_starting_a_process(worker))
        assert stop_group(worker, number) == 0
        assert workers.outcomes(id) == ["completed"]


def test_a_handler_that_heeds_no_cancellation_does_not_keep_the_worker(
    place: Place, tmp_path: Path
) -> None:
    with worker_processes(place, tmp_path) as workers:
        id = workers.queue.publish(1).id or 0
        worker = workers.start("ignores_cancellation")
        eventually(lambda: len(workers.lines("start")) == 1)
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert stop(worker) == 0
        assert workers.outcomes(id) == ["given_back"]


def test_terminated_it_gives_back_what_it_did_not_end(place: Place, tmp_path: Path) -> None:
    with worker_processes(place, tmp_path) as workers:
        ids = [p.id or 0 for p in workers.queue.publish_many(range(10))]
        worker = workers.start("slow", seconds=60, concurrency=4)
        eventually(lambda: len(workers.lines("start")) == 4)
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert worker.poll() is None, "it waits for its handlers"
        begun = time.monotonic()
        assert stop(worker) == 0, "the second signal hurries it"
        assert time.monotonic() - begun < 5 + BUSY
        (stats,) = workers.queue.stats()
        assert (stats.waiting, stats.leased) == (10, 0)
        assert len(workers.lines("cancelled")) == 4
        for id in ids:
            assert set(workers.outcomes(id)) <= {"given_back"}
        (message, *_) = workers.queue.claim(10)
        assert message.attempt == 1
