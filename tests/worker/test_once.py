"""Effects that happen once although the process dies between effect and completion."""

from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tests.place import Place
from tests.worker.harness import eventually, kill, stop, yard


@pytest.mark.parametrize("mode", ["in_transaction", "once"])
def test_killed_between_effect_and_completion(place: Place, tmp_path: Path, mode: str) -> None:
    with psycopg.connect(place.url, autocommit=True) as mine, yard(place, tmp_path) as there:
        mine.execute("drop table if exists effect")
        mine.execute("create table effect (id int)")
        there.queue.configure(backoff_first=timedelta(0))
        published = [p.id or 0 for p in there.queue.publish_many(range(5))]
        first = there.start(mode, seconds=60, lease=1)
        eventually(lambda: len(there.lines("effect")) == 5)
        kill(first)
        seen = mine.execute("select count(*) from effect").fetchone()
        assert seen == ((0,) if mode == "in_transaction" else (5,))
        second = there.start(mode, seconds=0, lease=1)
        eventually(there.is_empty)
        assert stop(second) == 0
        assert len(there.lines("effect")) == 10, "every handler ran twice"
        found = mine.execute("select id from effect order by id").fetchall()
        assert found == [(number,) for number in range(5)]
        for id in published:
            assert there.outcomes(id)[-1] == "completed"
