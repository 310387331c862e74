"""A queue with a made-up history and a lake beside it; one Spark for the whole run."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laneway import Queue
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory, synthesize
from laneway.lake.synth.history import write_database
from laneway.spark import session
from tests.lake import scenes
from tests.place import Place, fresh_schema
from tests.spark.conftest import SETTINGS

NOW = datetime.now(UTC)
LONG = "LANEWAY_SPARK_LONG" in os.environ or "LANEWAY_LAKE_MESSAGES" in os.environ


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "lake" in item.path.parts:
            item.add_marker(pytest.mark.timeout(600 if scenes.MESSAGES < 100_000 else 3600))


@pytest.fixture(scope="session")
def session_spark() -> Iterator[SparkSession]:
    running = session("tests", master="local[2]", settings=SETTINGS)
    yield running
    running.stop()


@pytest.fixture(scope="package")
def spark(session_spark: SparkSession) -> Iterator[SparkSession]:
    """With compiled queries: these are large enough to gain by it."""
    compiled = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: session_spark.conf.get(name) for name in compiled}
    for name, value in compiled.items():
        session_spark.conf.set(name, value)
    yield session_spark
    for name, old in before.items():
        session_spark.conf.set(name, old or "")


@pytest.fixture(scope="package")
def made_up(
    database: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> scenes.Scene:
    if not LONG:
        pytest.skip("two minutes: make test-spark-long, make lake-proof")
    place = Place(database, fresh_schema())
    return scenes.made_up(place, tmp_path_factory.mktemp("made-up"), spark)


@pytest.fixture(scope="package")
def real(
    database: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> scenes.Scene:
    return scenes.real(Place(database, fresh_schema()), tmp_path_factory.mktemp("real"), spark)


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema, upkeep_every=None) as client:
        client.install()
        yield client


@pytest.fixture
def lake(queue: Queue, place: Place, tmp_path: Path) -> Lake:
    """A lake that has nothing in it yet."""
    return Lake(place.url, tmp_path / "lake", schema=place.schema)


@pytest.fixture(scope="session")
def story() -> SyntheticHistory:
    """Four days, small."""
    return synthesize(3_000, until=NOW, days=4)


@pytest.fixture
def told(lake: Lake, story: SyntheticHistory) -> Lake:
    """A lake whose queue has a history."""
    write_database(story, lake.catalog)
    return lake


KEEP = timedelta(days=1)
