"""Redriving by Spark: by any condition, at a bounded rate, nothing lost and nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from laneway import NewMessage, Queue
from laneway.errors import InvalidOption, SparkFailed
from laneway.spark.redrive import Letters, _Redrive, dead_letters, redrive
from tests.place import Place
from tests.spark.conftest import LONG


def bury(queue: Queue, count: int, *, channels: int = 3, reason: str = "failed") -> None:
    queue.publish_many(
        [
            NewMessage(json.dumps({"n": n}).encode(), channel=f"c{n % channels}")
            for n in range(count)
        ]
    )
    while claimed := list(queue.claim(1000)):
        queue.fail(claimed, reason, error=ValueError("timeout of 30 s"))


def choose(spark: SparkSession, place: Place, **more: Any) -> Letters:
    return dead_letters(spark, place.url, schema=place.schema, **more)


def states(place: Place) -> tuple[int, int, int]:
    """Waiting, dead, and how many redrives there were."""
    with psycopg.connect(place.url) as connection:
        found = connection.execute(
            sql.SQL(
                "select (select count(*) from {s}.message), (select count(*) from {s}.dead),"
                " (select count(*) from {s}.history where outcome = 'redriven')"
            ).format(s=sql.Identifier(place.schema))
        ).fetchone()
        assert found is not None
        return found


def test_by_a_condition_on_error_and_payload(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    bury(queue, 30)
    bury(queue, 10, reason="no such customer")
    chosen = choose(
        spark,
        place,
        where="error like '%timeout%' and reason = 'failed' "
        "and get_json_object(cast(payload as string), '$.n') >= 10",
        channel="c1",
    )
    assert redrive(chosen, max_attempts=7, delay=timedelta(hours=1)) == 7
    assert states(place) == (7, 33, 7)
    assert {info.max_attempts for info in queue.messages()} == {7}
    assert redrive(choose(spark, place)) == 33
    assert states(place) == (40, 0, 40)


def test_what_died_again_is_not_of_the_same_run(
    spark: SparkSession, queue: Queue, place: Place
) -> None:
    """A task that is tried again after its chunks were committed, while some died again."""
    bury(queue, 10)
    letters = choose(spark, place)
    assert redrive(letters) == 10
    again = list(queue.claim(4))
    queue.fail(again, "failed")
    assert redrive(letters) == 0
    ids = [message.id for message in again]
    assert _Redrive(letters.address, letters.until, None, timedelta(0))._chunk(ids) == 0
    assert states(place) == (6, 4, 10)
    assert redrive(choose(spark, place)) == 4


def test_a_rate_goes_in_rounds(
    spark: SparkSession, queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At two a second each round of five seconds takes up to ten of every channel."""
    waits: list[float] = []
    monkeypatch.setattr("laneway.spark.redrive.sleep", waits.append)
    monkeypatch.setattr("laneway.spark.redrive.monotonic", lambda: 100.0)
    bury(queue, 24, channels=2)
    bury(queue, 3, channels=1)
    done: list[int] = []
    assert redrive(choose(spark, place), rate=2, progress=done.append) == 27
    assert done == [20, 27]
    assert waits == [0, 5]


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda s, p: redrive(choose(s, p), rate=0), InvalidOption, "rate is 0"),
        (lambda s, p: choose(s, p, where="colour = 1"), SparkFailed, "colour"),
        (lambda s, p: choose(s, p, where="no condition at"), SparkFailed, "PARSE_SYNTAX_ERROR"),
        (lambda s, p: choose(s, p, queues="a"), InvalidOption, "did you mean 'queue'"),
    ],
)
def test_wrong_words(
    spark: SparkSession,
    queue: Queue,
    place: Place,
    make: Callable[[SparkSession, Place], object],
    error: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(error) as caught:
        make(spark, place)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@LONG
def test_killed_in_the_middle_and_run_again(queue: Queue, place: Place) -> None:
    """The command, killed with -9 while it works, with its JVM; the second run does the rest."""
    bury(queue, 30_000, channels=300)
    command = [sys.executable, "-m", "laneway.cli", "redrive", "--spark", "--all", "--yes"]
    command += ["--url", place.url, "--schema", place.schema]
    first = subprocess.Popen(command, start_new_session=True)
    while not 0 < states(place)[0] < 30_000:
        assert first.poll() is None
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    waiting, dead, redriven = states(place)
    assert waiting + dead == 30_000 and redriven == waiting and dead > 0
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, timeout=400, check=False
    )
    assert json.loads(done.stdout)["redriven"] <= dead, done.stderr[-2000:]
    assert states(place) == (30_000, 0, 30_000)
