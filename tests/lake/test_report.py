"""Every number of the report is the one that plain SQL over the history gives."""

import pytest
from pyspark.sql import SparkSession

from penstock.lake import Lake
from penstock.lake.report import report
from tests.lake.proving import KEYS, Difference
from tests.lake.scenes import Scene


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_the_made_up_history_is_right(table: str, made_up: Scene) -> None:
    _judge(table, made_up.found[table])


@pytest.mark.parametrize("table", KEYS)
def test_a_table_of_a_real_run_is_right(table: str, real: Scene) -> None:
    _judge(table, real.found[table], may_be_empty=table == "normal")


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
    assert report(spark, made_up.lake.folder).days == 0
    assert made_up.lake.folder.read_rows("report/tables/flow") == before


def test_an_empty_lake_has_a_page(lake: Lake, spark: SparkSession) -> None:
    lake.sync()
    done = report(spark, lake.folder)
    page = lake.folder.read_text("report/report.html")
    assert done.days == 0 and "There is no history in this lake yet." in page
    assert "penstock lake sync" in page
