"""The examples of the pipeline run, on the Spark of the tests."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.lake import Lake
from tests.lake.conftest import LONG

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Run:
    """An example, as ``python examples/NAME.py --now`` runs it."""

    def __init__(self, server: EmbeddedPostgres, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._server, self._root, self._patch = server, root, patch
        self.url = ""

    def __call__(self, name: str) -> None:
        self.url = self._server.create_database(f"example {name}")
        self._patch.setenv("DATABASE_URL", self.url)
        self._patch.setenv("LAKE", str(self._root / "lake"))
        path = str(EXAMPLES / f"{name}.py")
        self._patch.setattr(sys, "argv", [path, "--now"])
        runpy.run_path(path, run_name="__main__")


@pytest.fixture
def run(server: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(server, tmp_path, monkeypatch)


@pytest.mark.skipif(not LONG, reason="a minute: make test-spark-long")
def test_from_a_data_frame_to_a_report(
    run: Run, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    run("spark_pipeline")
    said = capsys.readouterr().out
    assert "waiting: 300" in said, "published once"
    assert "synced: 300 damaged: 0" in said
    assert "outcomes: {'completed': 294, 'failed': 6}" in said
    assert "invoices" in _page(said)


def test_the_lake_is_kept_by_the_queue_itself(run: Run, tmp_path: Path) -> None:
    run("lake_schedule")
    assert (tmp_path / "lake" / "live" / "snapshot.parquet").exists()
    with Queue(run.url, name="lake") as queue:
        names = [schedule.name for schedule in queue.schedules.list()]
        assert names == ["lake-report", "lake-sync", "lake-tidy"]
        assert queue.dead_letters.count(queue="lake") == 0
        assert sum(stats.waiting for stats in queue.stats()) == 0
    assert Lake(run.url, tmp_path / "lake").sync().rows > 0, "the jobs are in the history"


def _page(said: str) -> str:
    found = re.search(r"report: (\S+)", said)
    assert found
    return Path(found[1]).read_text()
