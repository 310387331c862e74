"""One Spark for the whole run: starting it costs more than most tests."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from laneway import Queue
from laneway.spark import session
from laneway.spark.environment import quick_java
from tests.place import Place, fresh_schema

# Small queries on two busy cores: no code generation, few partitions.
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    **quick_java(),
}

_AT_LENGTH = bool(os.environ.get("LANEWAY_SPARK_LONG"))
LONG = pytest.mark.skipif(not _AT_LENGTH, reason="minutes: make test-spark-long")
# Some start five sessions, one after the other.
_TIMEOUT = 1800 if _AT_LENGTH else 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in item.path.parts:
            item.add_marker(pytest.mark.timeout(_TIMEOUT))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("tests", master="local[2]", settings=SETTINGS)
    yield running
    running.stop()


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema) as client:
        client.install()
        yield client


@pytest.fixture(scope="module")
def module_place(database: str) -> Place:
    return Place(database, fresh_schema())


def options(place: Place, **more: Any) -> dict[str, str]:
    return {"url": place.url, "schema": place.schema, **{k: str(v) for k, v in more.items()}}


def load(spark: SparkSession, place: Place, **more: Any) -> DataFrame:
    return spark.read.format("laneway").options(**options(place, **more)).load()
