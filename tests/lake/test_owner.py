"""A lake belongs to one queue: no other one writes into it or sweeps what it does not know."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from laneway import Queue
from laneway.errors import InvalidOption, LakeMismatch
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory, synthesize
from laneway.lake.synth.history import write_database, write_lake
from tests.lake.conftest import NOW
from tests.lake.test_sync import KEEP
from tests.place import Place
from tests.stores import Databases

Reach = Callable[[Lake], object]
STEPS: list[Reach] = [
    lambda lake: lake.sync(),
    lambda lake: lake.verify(everything=True),
    lambda lake: lake.compact(timedelta(0)),
    lambda lake: lake.purge(KEEP),
]
STORY = synthesize(300, until=NOW, days=3)


@pytest.fixture
def place(sqlite_files: Databases, tmp_path: Path) -> Place:
    return Place(sqlite_files.create_database(tmp_path.name), "mine")


def a_lake(
    place: Place, schema: str, root: Path, story: SyntheticHistory = STORY, name: str = "lake"
) -> Lake:
    lake = Lake(place.url, root, schema=schema, name=name)
    if name == "lake":
        with Queue(place.url, schema=schema, upkeep_every=None) as queue:
            queue.install()
        write_database(story, lake.catalog)
    return lake


@pytest.fixture
def mine(place: Place, tmp_path: Path) -> Lake:
    """What is old is only in the lake."""
    lake = a_lake(place, "mine", tmp_path / "lake")
    lake.sync()
    lake.verify()
    lake.purge(KEEP)
    return lake


def contents(lake: Lake) -> dict[str, bytes]:
    root = Path(lake.folder.root)
    return {file.path: (root / file.path).read_bytes() for file in lake.folder.history_files()}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("whose", ["new", "settled elsewhere", "second name"])
def test_the_lake_of_others_is_refused_and_not_touched(
    mine: Lake, place: Place, tmp_path: Path, whose: str, step: Reach
) -> None:
    before, root = contents(mine), Path(mine.folder.root)
    if whose == "second name":
        other = a_lake(place, "mine", root, name="second")
    else:
        other = a_lake(place, "other", root, synthesize(300, until=NOW, days=3, seed=2))
        if whose == "settled elsewhere":
            Lake(place.url, tmp_path / "its own", schema="other").sync()
    with pytest.raises(LakeMismatch, match="belongs to another queue or --name"):
        step(other)
    assert contents(mine) == before


def test_a_lost_catalog_does_not_cost_the_files(mine: Lake, tmp_path: Path) -> None:
    before = contents(mine)
    with mine.catalog.transaction() as store:
        store.connection.execute('delete from "mine_lake_commit"')
        store.connection.execute('delete from "mine_lake_file"')
    with pytest.raises(LakeMismatch, match="or the catalog was lost"):
        mine.sync()
    assert contents(mine) == before
    assert (
        Lake(mine.catalog.address.url, tmp_path / "new", schema="mine", name="new").sync().rows > 0
    )


def test_an_old_catalog_does_not_cost_the_files(place: Place, tmp_path: Path) -> None:
    lake = a_lake(place, "mine", tmp_path / "lake")
    lake.sync(100)
    before = contents(lake)
    with lake.catalog.transaction() as store:
        store.connection.execute('delete from "mine_lake_commit" where batch > 1')
    with pytest.raises(LakeMismatch, match="restored from before they were written"):
        lake.sync(100)
    assert contents(lake) == before


def test_nothing_is_made_up_in_a_real_lake_of_one_batch(mine: Lake) -> None:
    before = contents(mine)
    with pytest.raises(InvalidOption, match="real history"):
        write_lake(STORY, mine.folder)
    assert contents(mine) == before


def test_a_password_is_not_shown_with_the_catalog(tmp_path: Path) -> None:
    for url in ("postgresql://me:canary@h/d", "sqlite:///canary.db"):
        assert "canary" not in repr(Lake(url, tmp_path).catalog)
