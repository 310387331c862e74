"""A report over what is damaged, strange or somebody's own."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from laneway.errors import LakeMismatch
from laneway.lake import Lake
from laneway.lake.folder import Folder
from laneway.lake.report import create, small
from laneway.lake.report.create import Report, changed_days, current_state, saved_state
from laneway.lake.report.tables import Objective
from laneway.lake.synth import synthesize
from laneway.lake.synth.history import write_lake
from tests.lake.conftest import NOW


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(None, tmp_path / "lake")
    write_lake(synthesize(50, until=NOW, days=1), lake.folder)
    return lake


def test_a_file_that_is_cut_is_named_with_what_to_do(lake: Lake) -> None:
    path = lake.folder.history_files()[0].path
    Path(lake.folder.root, path).write_bytes(b"half")
    new = current_state(lake.folder, Objective(), None)
    with pytest.raises(LakeMismatch, match=rf"{path} is damaged .* lake verify --all"):
        changed_days(lake.folder, None, new)


@pytest.mark.parametrize("text", ["", '{"rec'])
def test_a_state_that_is_cut_says_what_to_do(lake: Lake, text: str) -> None:
    state = Path(lake.folder.root, "report/state.json")
    state.parent.mkdir()
    state.write_text(text)
    with pytest.raises(LakeMismatch, match=r"report/state.json is damaged: remove it"):
        saved_state(lake.folder)


def test_files_that_are_not_the_lakes_are_passed_over(lake: Lake) -> None:
    known = lake.folder.history_files()
    for name in ("day=x/batch=1", "day=2026-01-01/batch=abc", "day=2026-01-01/batch=1/_aside"):
        odd = Path(lake.folder.root, "history", name, "part-00000.parquet")
        odd.parent.mkdir(parents=True)
        odd.write_bytes(b"x")
    assert lake.folder.history_files() == known


def test_the_callers_session_stays_as_it_was(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report sets the time zone and shows tables under plain names: not in a notebook."""

    def made(used: SparkSession, *_: object, **__: object) -> Report:
        used.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        used.sql("select 2 as theirs").createOrReplaceTempView("history")
        return Report("page", 1)

    monkeypatch.setattr(create, "create_report", made)
    monkeypatch.setattr(small, "is_small", lambda folder: False)
    spark.sql("select 1 as mine").createOrReplaceTempView("history")
    try:
        assert lake.report().days == 1
        assert spark.table("history").columns == ["mine"]
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    finally:
        spark.catalog.dropTempView("history")


@pytest.mark.parametrize("name", ["[prod]", "{a,b}", "st*r", "wh?", "back\\slash", "plain"])
def test_spark_reads_this_folder_and_not_what_its_name_matches(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    table = pa.table({"n": [1]})
    for sibling in {name, "star", "why", "p", "a", "b"}:
        Folder(str(tmp_path / sibling)).write_table(table, "live/x.parquet")
    folder = Folder(str(tmp_path / name))
    assert spark.read.parquet(folder.pattern("live/x.parquet")).count() == 1
