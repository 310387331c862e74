"""Effects that happen once although the process dies between effect and completion."""

from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.place import Place
from tests.worker.harness import eventually, kill, stop, worker_processes


@pytest.mark.parametrize("mode", ["in_transaction", "once"])
def test_killed_between_effect_and_completion(place: Place, tmp_path: Path, mode: str) -> None:
    with (
        psycopg.connect(place.url, autocommit=True) as mine,
        worker_processes(place, tmp_path) as workers,
    ):
        mine.execute("drop table if exists effect")
        mine.execute("create table effect (id int)")
        workers.queue.configure(backoff_initial=timedelta(0))
        published = [p.id or 0 for p in workers.queue.publish_many(range(5))]
        first = workers.start(mode, seconds=60, lease=1)
        eventually(lambda: len(workers.lines("effect")) == 5)
        kill(first)
        seen = mine.execute("select count(*) from effect").fetchone()
        assert seen == ((0,) if mode == "in_transaction" else (5,))
        second = workers.start(mode, seconds=0, lease=1)
        eventually(workers.is_empty)
        assert stop(second) == 0
        assert len(workers.lines("effect")) == 10, "every handler ran twice"
        found = mine.execute("select id from effect order by id").fetchall()
        assert found == [(number,) for number in range(5)]
        for id in published:
            assert workers.outcomes(id)[-1] == "completed"
