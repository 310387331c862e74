"""Handlers ten times as long as their lease: each runs once, even if it holds the interpreter."""

from pathlib import Path

import pytest

from tests.place import Place
from tests.worker.harness import eventually, stop, worker_processes


@pytest.mark.repeats("a hundred long handlers take 24 s; heartbeats are tested alone in make test")
@pytest.mark.parametrize("mode", ["slow", "blocking", "hogging"])
def test_one_run_each_for_a_hundred_messages(place: Place, tmp_path: Path, mode: str) -> None:
    with worker_processes(place, tmp_path) as workers:
        ids = [p.id or 0 for p in workers.queue.publish_many(range(100))]
        settings = {"seconds": 20, "lease": 2, "concurrency": 100}
        worker = workers.start(mode, **settings)
        rival = workers.start(mode, **settings)  # takes whatever comes free
        eventually(workers.is_empty, 90)
        assert stop(worker) == 0
        assert stop(rival) == 0
        assert sorted(workers.counts("start").elements()) == sorted(ids)
        assert sorted(workers.counts("end").elements()) == sorted(ids)
        for id in ids:
            assert workers.outcomes(id) == ["completed"]
