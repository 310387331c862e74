"""The claim stream: every message once in the sink, completed only when Spark has committed it,
whatever crashes where."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from laneway import NewMessage, Queue
from laneway.spark import reason
from tests.place import Place
from tests.spark.streams import Sink, forget, run, start


def look(place: Place, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url) as connection:
        statement = sql.SQL(text).format(s=sql.Identifier(place.schema))
        return connection.execute(statement).fetchall()


def states(place: Place) -> dict[str, int]:
    """How many messages wait, are leased, are sealed in batches, and were completed how often."""
    return {
        name: look(place, f"select count(*) from {{s}}.{text}")[0][0]  # noqa: S608
        for name, text in {
            "messages": "message",
            "leases": "lease",
            "sealed": "stream_item",
            "completed": "history where outcome = 'completed'",
            "stale": "history where outcome = 'stale'",
        }.items()
    }


def settled(completed: int) -> dict[str, int]:
    return {"messages": 0, "leases": 0, "sealed": 0, "completed": completed, "stale": 0}


def test_available_now_takes_all_and_completes_all(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """Also the last batch, for which Spark calls no commit. A limited channel gives up its messages
    one by one: limits hold here as everywhere."""
    queue.channel("strict").limit(concurrency=1)
    ids = queue.publish_many(
        [
            *(NewMessage(b"a", channel=f"c{n}") for n in range(9)),
            *[NewMessage(b"b", channel="strict")] * 3,
        ]
    )
    sink = Sink()
    run(spark, place, sink, tmp_path, what="claims", stream="s", maxMessagesPerTrigger=5)
    assert sorted(sink.ids) == sorted(published.id for published in ids if published.id)
    assert max(len(batch) for batch in sink.batches.values()) <= 5
    strict = {published.id for published in ids[9:]}
    assert all(len(strict & set(batch)) <= 1 for batch in sink.batches.values())
    assert states(place) == settled(12)


def fail(frame: DataFrame, batch: int) -> None:
    frame.collect()
    raise RuntimeError("the sink fails on purpose")


def test_a_crash_before_the_sinks_commit_replays_the_same_batch(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    queue.publish_many([b"x"] * 10)
    more = {"what": "claims", "maxMessagesPerTrigger": 4}
    with pytest.raises(PySparkException, match="fails on purpose"):
        run(spark, place, fail, tmp_path, **more)
    assert states(place) == {"messages": 10, "leases": 4, "sealed": 4, "completed": 0, "stale": 0}
    held = look(place, "select message_id from {s}.lease order by 1")
    sink = Sink()
    run(spark, place, sink, tmp_path, **more)
    assert sorted(sink.batches[0]) == [row[0] for row in held]
    assert len(sink.ids) == len(set(sink.ids)) == 10
    assert states(place) == settled(10)


@pytest.mark.parametrize("noted", [True, False])
def test_a_crash_between_the_sinks_commit_and_the_completion(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path, noted: bool
) -> None:
    """The sink has the batch. If Spark's commit log has it too, it is completed and not read again;
    if not, the same rows come again. Either way each message ends once."""
    queue.publish_many([b"x"] * 6)
    sink = Sink()
    query = start(spark, place, sink, tmp_path, every="1 hour", what="claims")
    while not (tmp_path / "commits" / "0").exists():
        assert not query.awaitTermination(1)
    query.stop()
    assert states(place) == {"messages": 6, "leases": 6, "sealed": 6, "completed": 0, "stale": 0}
    first = sorted(sink.ids)
    if not noted:
        forget(tmp_path, "commits")
    run(spark, place, sink, tmp_path, what="claims")
    assert sink.replayed == ([] if noted else [0])
    assert sorted(sink.batches[0]) == first and len(sink.ids) == 6
    assert states(place) == settled(6)


@pytest.mark.repeats("a crash elsewhere in the other tests here")
def test_a_claim_that_never_came_into_sparks_log_is_taken_up_again(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """The crash between the claim and Spark's note of it, in the first batch and in a later one."""
    more = {"what": "claims", "maxMessagesPerTrigger": 3}
    queue.publish_many([b"x"] * 3)
    with pytest.raises(PySparkException):
        run(spark, place, fail, tmp_path, **more)
    forget(tmp_path, "offsets")
    sink = Sink()
    run(spark, place, sink, tmp_path, **more)
    assert len(sink.ids) == 3 and states(place)["completed"] == 3
    queue.publish_many([b"x"] * 5)
    with pytest.raises(PySparkException):
        run(spark, place, fail, tmp_path, **more)
    forget(tmp_path, "offsets")
    run(spark, place, sink, tmp_path, **more)
    assert len(set(sink.ids)) == len(sink.ids) == 8
    assert states(place) == settled(8)


@pytest.mark.repeats("fences are a conformance case")
def test_an_older_query_is_fenced_out(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """Two queries under one name: the second takes the stream over, the first is done."""
    queue.publish_many([b"x"] * 4)
    first, second = Sink(), Sink()
    more = {"what": "claims", "stream": "s", "poll": "0s"}
    old = start(spark, place, first, tmp_path / "old", now=False, **more)
    old.processAllAvailable()
    new = start(spark, place, second, tmp_path / "new", now=False, **more)
    with pytest.raises(PySparkException) as caught:
        old.awaitTermination(60)
    assert "stream s was taken over by another query" in reason(caught.value)
    queue.publish_many([b"x"] * 4)
    new.processAllAvailable()
    new.stop()
    assert len(first.ids) == len(second.ids) == 4
    with pytest.raises(PySparkException) as refused:
        run(spark, place, first, tmp_path / "old", **more)
    assert "the checkpoint is not the one of stream s" in reason(refused.value)


@pytest.mark.repeats("expired leases are a conformance case")
def test_leases_that_ran_out_are_left_to_others(
    spark: SparkSession, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """A query that was away for longer than its leases: the messages are somebody else's."""
    ids = [one.id for one in queue.publish_many([b"x"] * 4)]
    more = {"what": "claims", "stream": "s"}
    with pytest.raises(PySparkException):
        run(spark, place, fail, tmp_path, **more)
    look(place, "update {s}.lease set until = now() - interval '1 second' returning 1")
    queue.upkeep()
    look(place, "update {s}.wake set at = now(), due = now() returning 1")
    look(place, "update {s}.message set due = now() returning 1")
    others = list(queue.claim(2))
    assert len(others) == 2
    sink = Sink()
    run(spark, place, sink, tmp_path, **more)
    assert sorted([*sink.ids, *(message.id for message in others)]) == ids
    assert [answer.status for answer in queue.complete(others)] == ["completed"] * 2
    assert look(place, "select count(*) from {s}.history where terminal") == [(4,)]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({}, "option 'what' is missing: a stream reads 'claims' (takes messages) or 'history'"),
        ({"what": "claims", "channel": "c"}, "option 'channel' does not exist for a claim stream"),
        ({"what": "history", "lease": "5m"}, "option 'lease' does not exist for a history stream"),
        ({"what": "claims", "lease": "5"}, "option 'lease' is '5': write a duration like 30s"),
        ({"what": "claims", "maxMessagesPerTrigger": "0"}, "must be a number from 1 to 10,000"),
    ],
)
def test_wrong_options_of_streams(
    spark: SparkSession, place: Place, tmp_path: Path, wrong: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        run(spark, place, Sink(), tmp_path, **wrong)
    assert sentence in reason(caught.value)
