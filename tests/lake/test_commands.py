"""``laneway lake …`` as a person and a script run it."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from laneway import Queue
from laneway.errors import LakeMismatch
from laneway.lake import Lake
from laneway.lake.catalog import Catalog
from laneway.lake.folder import Folder
from laneway.lake.synth import SyntheticHistory
from laneway.lake.synth.history import write_database
from tests.cli.commands import Cli
from tests.place import Place


@pytest.fixture
def cli(queue: Queue, place: Place) -> Cli:
    return Cli(place.url, place.schema)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def test_a_life_of_a_lake(cli: Cli, root: str, place: Place, story: SyntheticHistory) -> None:
    done = cli.run("lake", "synth", "--url", place.url, "--messages", "500", "--days", "3")
    assert "rows of 500 messages" in done.stderr
    done = cli.run("lake", "sync", "--lake", root, "--batch-rows", "300")
    assert "batch 0: 300 rows" in done.stderr and done.stdout == ""
    assert cli.json("lake", "sync", "--lake", root) == [{"batches": 0, "rows": 0}]
    (checked,) = cli.json("lake", "verify", "--lake", root)
    assert checked["damaged"] == [] and checked["batches"] == 2
    assert "files of" in cli.run("lake", "compact", "--lake", root, "--older", "0s").stderr
    days = cli.json("lake", "purge", "--lake", root, "--keep", "1d", "--dry-run")
    assert {day["stays"] for day in days} > {None}
    gone = cli.run("lake", "purge", "--lake", root, "--keep", "1d", "--yes").stdout
    assert "\tyes\t" in gone and "newer than the retention" in gone
    (found,) = cli.json("lake", "status", "--lake", root)
    assert found["behind"] == 0 and found["rows"] >= 500
    assert "rows" in cli.run("lake", "status", "--lake", root).stdout


def test_a_damaged_file_is_an_exit_code(cli: Cli, root: str, place: Place) -> None:
    cli.run("lake", "synth", "--url", place.url, "--messages", "50", "--days", "1")
    cli.run("lake", "sync", "--lake", root)
    next(Path(root).glob("history/*/*/*.parquet")).write_bytes(b"")
    done = cli.run("lake", "verify", "--lake", root, code=1)
    assert "The next laneway lake sync writes batches" in done.stderr


def test_what_is_no_lake_is_told_apart(cli: Cli, root: str, tmp_path: Path) -> None:
    said = cli.run("lake", "report", "--lake", root, code=2).stderr
    assert "there is no lake at" in said and "laneway lake sync" in said
    assert not Path(root).exists()
    (tmp_path / "letters").write_text("mine")
    assert "not a lake" in cli.run("lake", "report", "--lake", str(tmp_path), code=2).stderr
    assert "not a lake" in cli.run("lake", "sync", "--lake", str(tmp_path), code=2).stderr
    assert [file.name for file in tmp_path.iterdir()] == ["letters"]


def test_a_folder_that_is_not_in_the_catalog_is_refused(
    cli: Cli, root: str, place: Place, tmp_path: Path
) -> None:
    cli.run("lake", "synth", "--url", place.url, "--messages", "50", "--days", "1")
    cli.run("lake", "sync", "--lake", root)
    other = str(tmp_path / "other")
    said = cli.run("lake", "sync", "--lake", other, code=1).stderr
    assert "has files, but" in said and "verify --all" in said
    (second,) = cli.json("lake", "sync", "--lake", other, "--name", "b")
    assert second["rows"] >= 50


def test_nothing_is_made_up_beside_what_is_real(
    cli: Cli, root: str, queue: Queue, place: Place, story: SyntheticHistory
) -> None:
    write_database(story, _catalog(place, root))
    said = cli.run("lake", "synth", "--url", place.url, "--messages", "5", code=2).stderr
    assert "real history" in said
    cli.run("lake", "sync", "--lake", root, "--batch-rows", "1000")
    assert "real history" in cli.run("lake", "synth", "--lake", root, code=2).stderr


def _catalog(place: Place, root: str) -> Catalog:

    return Lake(place.url, root, schema=place.schema).catalog


def test_an_objective_that_makes_no_sense_is_refused(cli: Cli, root: str) -> None:
    cli.run("lake", "sync", "--lake", root)
    said = cli.run("lake", "report", "--lake", root, "--share", "1.5", code=2).stderr
    assert "between 0 and 1" in said


@pytest.mark.parametrize("step", [["sync"], ["synth", "--messages", "50"]])
def test_a_folder_that_cannot_be_made_is_one_sentence(
    cli: Cli, place: Place, tmp_path: Path, step: list[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    cli.run("lake", "synth", "--url", place.url, "--messages", "50", "--days", "1")
    said = cli.run("lake", *step, "--lake", str(tmp_path / "file" / "lake"), code=1).stderr
    assert "cannot be read or written" in said and "Traceback" not in said


def test_a_uri_that_arrow_does_not_know_is_refused(cli: Cli) -> None:
    assert (
        "cannot be opened as a lake" in cli.run("lake", "sync", "--lake", "foo://x", code=2).stderr
    )


def test_a_full_disk_is_one_sentence_and_run_again(
    lake: Lake, story: SyntheticHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_database(story, lake.catalog)
    with monkeypatch.context() as patched:
        full = OSError(28, "No space left on device")
        patched.setattr(Folder, "write_aside", Mock(side_effect=full))
        with pytest.raises(LakeMismatch, match="No space left on device; fix that"):
            lake.sync()
    assert lake.sync().rows == story.history.num_rows


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--until", "0001-01-01T00:00Z"], "before the year 1"),
        (["--days", "1e9"], "ten years"),
        (["--seed", "-1"], "must not be negative"),
    ],
)
def test_a_time_that_cannot_be_made_up(
    cli: Cli, root: str, given: list[str], sentence: str
) -> None:
    said = cli.run("lake", "synth", "--lake", root, "--messages", "9", *given, code=2).stderr
    assert sentence in said and not Path(root).exists()
