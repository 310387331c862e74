"""Every number of the report is the one that plain SQL over the history gives."""

import os
from datetime import UTC, datetime
from typing import Any

import psycopg
import pyarrow.compute as pc
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from penstock import Queue
from penstock.lake import Lake
from penstock.lake.columns import LIVE
from penstock.lake.live import write_live
from penstock.lake.report import report
from penstock.lake.settings import Objective
from penstock.lake.synth import Story, tell
from penstock.lake.synth.writing import write_database
from tests.lake.proving import KEYS, Difference, difference, proved, reported
from tests.lake.real_run import live_through
from tests.place import Place, fresh_schema

UNTIL = datetime(2026, 11, 10, 13, 7, tzinfo=UTC)
MESSAGES = int(os.environ.get("PENSTOCK_LAKE_MESSAGES", "3000"))
DAYS = 4 if MESSAGES < 100_000 else 14
Found = dict[str, Difference]


@pytest.fixture(scope="module")
def made_up(database: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """In two steps, so that the second report computes only the days that were touched."""
    place, root = Place(database, fresh_schema()), tmp_path_factory.mktemp("made-up")
    lake = Lake(place.url, root, schema=place.schema)
    story = tell(MESSAGES, until=UNTIL, days=DAYS)
    first, second = _halves(story)
    with Queue(place.url, schema=place.schema, upkeep_every=None) as queue:
        queue.install()
        for part in (first, second):
            write_database(part, lake.books)
            lake.sync()
            write_live(lake.folder, part.live, part.until, {})
            days = report(spark, lake.folder).days
    assert days < DAYS, "only what was touched"
    return _found(place, lake, _load_live(story))


def _halves(story: Story) -> tuple[Story, Story]:
    """What had ended two days before, and the rest."""
    border = datetime(2026, 11, 9, 5, 3, tzinfo=UTC)
    before = pc.less(story.history["ended_at"], border)
    first = Story(story.history.filter(before), LIVE.empty_table(), border)
    return first, Story(story.history.filter(pc.invert(before)), story.live, story.until)


@pytest.fixture(scope="module")
def real(database: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Found:
    place, root = Place(database, fresh_schema()), tmp_path_factory.mktemp("real")
    lake = Lake(place.url, root, schema=place.schema)
    live_through(place)
    assert lake.sync().rows > 100
    report(spark, lake.folder)
    return _found(place, lake, _note_live)


def _found(place: Place, lake: Lake, prepare: Any) -> Found:
    seen_at = datetime.fromisoformat(lake.folder.read_json("live/numbers.json")["seen_at"])
    with psycopg.connect(place.url) as connection:
        prepare(connection, place.schema, seen_at)
        return {
            name: difference(name, reported(lake.folder, name), rows)
            for name, rows in proved(connection, place.schema, seen_at, Objective())
        }


def _load_live(story: Story) -> Any:
    def load(connection: psycopg.Connection[Any], schema: str, seen_at: datetime) -> None:
        _create_live(connection, schema)
        copy = sql.SQL("copy {}.live from stdin").format(sql.Identifier(schema))
        with connection.cursor().copy(copy) as target:
            for row in story.live.to_pylist():
                target.write_row([row[name] for name in LIVE.names])

    return load


def _note_live(connection: psycopg.Connection[Any], schema: str, seen_at: datetime) -> None:
    _create_live(connection, schema)
    connection.execute(
        sql.SQL(
            "insert into {0}.live select m.id, m.queue, m.channel, m.kind, m.state, m.attempt, "
            "greatest(m.due, m.published_at), m.claimed_at, {1} from {0}.message_v1 m union all "
            "select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, {1} "
            "from {0}.dead_letter_v1 d"
        ).format(sql.Identifier(schema), sql.Literal(seen_at))
    )


def _create_live(connection: psycopg.Connection[Any], schema: str) -> None:
    connection.execute(
        sql.SQL(
            "create table {}.live (message_id bigint, queue text, channel text, kind text, "
            "state text, attempt bigint, due timestamptz, claimed_at timestamptz, "
            "seen_at timestamptz)"
        ).format(sql.Identifier(schema))
    )


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_the_made_up_history_is_right(table: str, made_up: Found) -> None:
    _judge(table, made_up[table])


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_a_real_run_is_right(table: str, real: Found) -> None:
    _judge(table, real[table], may_be_empty=table in ("normal",))


def _judge(table: str, found: Difference, may_be_empty: bool = False) -> None:
    print(  # noqa: T201
        f"{table:<12} {found.rows:>9,} rows, largest difference {found.largest:.1e}, "
        f"of sketched percentiles {found.sketched:.2%}"
    )
    assert not found.wrong, found.wrong[:5]
    assert found.rows or may_be_empty
