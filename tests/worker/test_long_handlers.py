"""Handlers ten times as long as their lease: each runs once, even if it holds the interpreter."""

from pathlib import Path

import pytest

from tests.place import Place
from tests.worker.harness import eventually, stop, yard


@pytest.mark.parametrize("mode", ["slow", "blocking", "hogging"])
def test_one_run_each_for_a_hundred_messages(place: Place, tmp_path: Path, mode: str) -> None:
    with yard(place, tmp_path) as there:
        ids = [p.id or 0 for p in there.queue.publish_many(range(100))]
        terms = {"seconds": 20, "lease": 2, "concurrency": 100}
        worker = there.start(mode, **terms)
        rival = there.start(mode, **terms)  # takes whatever comes free
        eventually(there.is_empty, 90)
        assert stop(worker) == 0
        assert stop(rival) == 0
        assert sorted(there.counts("start").elements()) == sorted(ids)
        assert sorted(there.counts("end").elements()) == sorted(ids)
        for id in ids:
            assert there.outcomes(id) == ["completed"]
