"""Two lakes with a report each, and how far each table is from plain SQL over the history."""

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow.compute as pc
from psycopg import sql
from pyspark.sql import SparkSession

from laneway import Queue
from laneway.lake import Lake
from laneway.lake.columns import LIVE
from laneway.lake.folder import by_day, write_live
from laneway.lake.report.create import create_report
from laneway.lake.report.tables import Objective
from laneway.lake.synth import SyntheticHistory, synthesize
from tests.lake.proving import KEYS, Difference, difference, proved, reported
from tests.lake.real_run import live_through
from tests.place import Place

UNTIL = datetime(2026, 11, 10, 13, 7, tzinfo=UTC)
MESSAGES = int(os.environ.get("LANEWAY_LAKE_MESSAGES", "3000"))
DAYS = 4 if MESSAGES < 100_000 else 14
Prepare = Callable[[psycopg.Connection[Any], str, datetime], None]


class Scene(NamedTuple):
    """``without_spark``: how far the tables are from Spark's if they are computed without it."""

    lake: Lake
    found: dict[str, Difference]
    without_spark: dict[str, Difference]

    @property
    def page(self) -> str:
        return self.lake.folder.read_text("report/report.html")


def made_up(place: Place, root: Path, spark: SparkSession) -> Scene:
    """In two steps, so that the second report computes only the days that were touched."""
    lake = Lake(place.url, root, schema=place.schema)
    story = synthesize(MESSAGES, until=UNTIL, days=DAYS)
    with Queue(place.url, schema=place.schema, upkeep_every=None) as queue:
        queue.install()
    for part in _halves(story):
        for day, rows in by_day(part.history):
            lake.catalog.load(rows, date.fromisoformat(day))
        lake.sync()
        write_live(lake.folder, part.live, part.until, {})
        days = create_report(spark, lake.folder).days
    assert days < DAYS, "only what was touched"
    found = _found(place, lake, _load(story))
    return Scene(lake, found, _without_spark(lake) if MESSAGES < 100_000 else {})


def _halves(story: SyntheticHistory) -> tuple[SyntheticHistory, SyntheticHistory]:
    """What had ended the day before the last, and the rest."""
    border = datetime(2026, 11, 9, 5, 3, tzinfo=UTC)
    before = pc.less(story.history["ended_at"], border)
    first = SyntheticHistory(story.history.filter(before), LIVE.empty_table(), border)
    return first, SyntheticHistory(story.history.filter(pc.invert(before)), story.live, story.until)


def real(place: Place, root: Path, spark: SparkSession) -> Scene:
    lake = Lake(place.url, root, schema=place.schema)
    live_through(place)
    assert lake.sync().rows > 100
    create_report(spark, lake.folder)
    return Scene(lake, _found(place, lake, _note), _without_spark(lake))


def _without_spark(lake: Lake) -> dict[str, Difference]:
    by_spark = {name: reported(lake.folder, name) for name in KEYS}
    lake.folder.remove("report")
    create_report(None, lake.folder)
    return {name: difference(name, reported(lake.folder, name), by_spark[name]) for name in KEYS}


def _found(place: Place, lake: Lake, prepare: Prepare) -> dict[str, Difference]:
    seen_at = datetime.fromisoformat(lake.folder.read_json("live/numbers.json")["seen_at"])
    with psycopg.connect(place.url) as connection:
        prepare(connection, place.schema, seen_at)
        return {
            name: difference(name, reported(lake.folder, name), rows)
            for name, rows in proved(connection, place.schema, seen_at, Objective())
        }


def _load(story: SyntheticHistory) -> Prepare:
    """The made-up rest, as a table."""

    def load(connection: psycopg.Connection[Any], schema: str, seen_at: datetime) -> None:
        _create(connection, schema)
        copy = sql.SQL("copy {}.live from stdin").format(sql.Identifier(schema))
        with connection.cursor().copy(copy) as target:
            for row in story.live.to_pylist():
                target.write_row([row[name] for name in LIVE.names])

    return load


def _note(connection: psycopg.Connection[Any], schema: str, seen_at: datetime) -> None:
    """What really is there; nothing has moved since the sync."""
    _create(connection, schema)
    connection.execute(
        sql.SQL(
            "insert into {0}.live select m.id, m.queue, m.channel, m.kind, m.state, m.attempt, "
            "greatest(m.due, m.published_at), m.claimed_at, {1} from {0}.message_v1 m union all "
            "select d.id, d.queue, d.channel, d.kind, 'dead', d.attempt, null, null, {1} "
            "from {0}.dead_letter_v1 d"
        ).format(sql.Identifier(schema), sql.Literal(seen_at))
    )


def _create(connection: psycopg.Connection[Any], schema: str) -> None:
    connection.execute(
        sql.SQL(
            "create table {}.live (message_id bigint, queue text, channel text, kind text, "
            "state text, attempt bigint, due timestamptz, claimed_at timestamptz, "
            "seen_at timestamptz)"
        ).format(sql.Identifier(schema))
    )
