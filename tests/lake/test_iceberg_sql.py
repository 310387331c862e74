"""Statements for a Spark that has Iceberg, read by Spark's parser; make test-open-lake has the
rest."""

import sys

import pytest
from pyspark.sql import SparkSession

from laneway.errors import DriverMissing, InvalidOption
from laneway.lake import Lake
from laneway.lake.catalog import Tenant
from laneway.lake.iceberg import erase_sql

TABLE = "warehouse.shop.`s history"


def test_without_pyiceberg_the_install_line_is_said(
    told: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.sync()
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(DriverMissing, match=r'pip install "laneway\[iceberg\]"'):
        told.iceberg("shop.history")


def test_spark_parses_every_statement(told: Lake, spark: SparkSession) -> None:
    told.sync(2_000)
    assert len(told.iceberg_sql(TABLE)) == 1, "nothing is verified yet"
    told.verify()
    made, *merges = told.iceberg_sql(TABLE)
    assert made.startswith("CREATE TABLE IF NOT EXISTS `warehouse`.`shop`.```s history`")
    assert len(merges) == len(told.catalog.batches())
    erasing = erase_sql(TABLE, Tenant("it's \\ a", "mail"))
    for statement in (made, *merges, *erasing):
        _parse(spark, statement)
    with pytest.raises(InvalidOption, match=r"catalog\.namespace\.name"):
        told.iceberg_sql("history")


def _parse(spark: SparkSession, statement: str) -> None:
    """Only parsed: there is no such catalog."""
    spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
