"""Every number of the report is the one that plain SQL over the history gives."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import array, lit
from pyspark.sql.types import StructType

from laneway.lake import Lake
from laneway.lake.columns import HISTORY
from laneway.lake.folder import batch_path
from laneway.lake.report.create import create_report
from laneway.lake.report.summaries import summary_sql
from laneway.lake.report.tables import COLUMNS, DAILY, Objective, table_sql
from tests.lake.conftest import NOW
from tests.lake.proving import KEYS, Difference
from tests.lake.scenes import Scene


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_the_made_up_history_is_right(table: str, made_up: Scene) -> None:
    _judge(table, made_up.found[table])


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_a_real_run_is_right(table: str, real: Scene) -> None:
    _judge(table, real.found[table], may_be_empty=table == "normal")


@pytest.mark.parametrize("table", KEYS)
def test_a_table_without_spark_is_the_same(table: str, real: Scene) -> None:
    _judge(table, real.without_spark[table], may_be_empty=table == "normal")


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_the_made_up_history_without_spark(table: str, made_up: Scene) -> None:
    _judge(table, made_up.without_spark[table])


@pytest.mark.parametrize("table", KEYS)
def test_the_columns_of_a_table_are_those_that_spark_computes(
    table: str, real: Scene, spark: SparkSession
) -> None:
    """Real was read by Spark last: its views are there."""
    arguments = {**Objective().arguments, "now": NOW, "days": array(lit(NOW.date()))}
    arguments |= {"target": 0.99}
    query = table_sql(table) if table in DAILY else summary_sql(table)
    used = {name: value for name, value in arguments.items() if f":{name}" in query}
    found = spark.sql(query, args=used).schema
    assert found.simpleString() == StructType.fromDDL(COLUMNS[table]).simpleString()


def _judge(table: str, found: Difference, may_be_empty: bool = False) -> None:
    print(  # noqa: T201
        f"\n{table:<12} {found.rows:>9,} rows, largest difference {found.largest:.1e}, "
        f"of percentiles {found.sketched:.2%}",
        end="",
    )
    assert not found.wrong, found.wrong[:5]
    assert found.rows or may_be_empty


def test_a_report_of_nothing_new_computes_no_day(made_up: Scene, spark: SparkSession) -> None:
    before = made_up.lake.folder.read_rows("report/tables/flow")
    assert create_report(spark, made_up.lake.folder).days == 0
    assert made_up.lake.folder.read_rows("report/tables/flow") == before


def test_an_empty_lake_has_a_page(lake: Lake) -> None:
    lake.sync()
    done = create_report(None, lake.folder)
    page = lake.folder.read_text("report/report.html")
    assert done.days == 0 and "There is no history in this lake yet." in page
    assert "laneway lake sync" in page


def test_the_state_of_a_real_run_counts_what_just_happened(real: Scene) -> None:
    """Minutes after the starts, and with the dead letters that the table lists."""
    folder = real.lake.folder
    now = {row["queue"]: row for row in folder.read_rows("report/tables/outlook")}["default"]
    assert now["came_per_hour"] >= now["started_per_hour"] > 60
    rows = folder.read_rows("report/tables/redrive")
    listed = sum(row["letters"] for row in rows if row["queue"] == "default")
    assert listed == now["dead"] > 0
    assert f"<dt>dead letters</dt><dd>{listed}</dd>" in real.page
    assert {row["advice"] for row in rows if row["type"] == "ValueError"} <= {
        "fix first", "discard", "nothing left",
    }  # fmt: skip


_TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)


def _report_of_one(lake: Lake, **seconds: int) -> None:
    """Of an attempt whose message was due at ten; the times are seconds after that."""
    seconds |= {"due": 0, "published_at": 0, "first_published_at": 0}
    row: dict[str, Any] = {name: _TEN + timedelta(seconds=s) for name, s in seconds.items()}
    row |= {"id": 1, "xid": 1, "message_id": 1, "queue": "mail", "channel": "a", "kind": "send"}
    row |= {"attempt": 1, "outcome": "completed", "terminal": True, "dead": False}
    rows = pa.Table.from_pylist([row], schema=HISTORY)
    lake.folder.write_table(rows, f"{batch_path('2026-11-10', 0)}/part-00000.parquet")
    create_report(None, lake.folder)


def test_what_begins_and_ends_with_an_hour_is_in_that_hour(lake: Lake) -> None:
    """It waits from 10:00 to 11:00 and runs until 12:00, to the microsecond."""
    _report_of_one(lake, claimed_at=3600, ended_at=7200)
    hours = {row["hour"].hour: row for row in lake.folder.read_rows("report/tables/hours")}
    assert {h: row["mean_waiting"] for h, row in hours.items() if row["mean_waiting"]} == {10: 1}
    assert {h: row["mean_running"] for h, row in hours.items() if row["mean_running"]} == {11: 1}
    assert {h: row["running_peak"] for h, row in hours.items() if row["running_peak"]} == {11: 1}
    lanes = lake.folder.read_rows("report/tables/lanes")
    slots = {(row["slot"] - _TEN) // timedelta(minutes=5): row for row in lanes}
    # At the ends of slots: a border belongs to what begins there, not to what ends there.
    assert sorted(n for n, row in slots.items() if row["waiting"]) == list(range(-1, 11))
    assert sorted(n for n, row in slots.items() if row["running"]) == list(range(11, 23))
    assert (slots[0]["came"], slots[12]["started"]) == (1, 1)
    assert max(row["oldest_s"] or 0 for row in lanes) == 3300


def test_time_in_a_workers_own_queue_is_waiting(lake: Lake) -> None:
    """Due at 10:00:00, claimed a second later, begun 30 s later, ended after 5 s of work."""
    _report_of_one(lake, claimed_at=1, started_at=31, ended_at=36)
    (flow,) = lake.folder.read_rows("report/tables/flow")
    assert (flow["wait_us"], flow["run_us"]) == (31_000_000, 5_000_000)
    hours = {row["hour"]: row for row in lake.folder.read_rows("report/tables/hours")}
    assert hours[_TEN]["mean_running"] == pytest.approx(5 / 3600)
    assert hours[_TEN]["mean_waiting"] == pytest.approx(31 / 3600)
