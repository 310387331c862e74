"""A queue in a file of SQLite with a made-up history, and processes that die at a step."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laneway import Queue
from laneway.lake import Lake
from laneway.lake.synth import SyntheticHistory, synthesize
from laneway.lake.synth.history import write_database

NOW = datetime.now(UTC)
STORY = synthesize(300, until=NOW, days=2)
BATCH = 120


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    place = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue(place, upkeep_every=None) as queue:
        queue.install()
    write_database(STORY, Lake(place, tmp_path / "unused").catalog)
    yield place


@pytest.fixture
def story() -> SyntheticHistory:
    return STORY


def rows_of(lake: Lake) -> pa.Table:
    files = [lake.folder.read_table(file.path) for file in lake.folder.history_files()]
    return pa.concat_tables(files)


def positions(rows: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(rows["xid"].to_pylist(), rows["id"].to_pylist(), strict=True))


def survives(work: Callable[[], object], traps: list[tuple[Any, str]], count: int) -> bool:
    """Runs it in a process that dies by SIGKILL at the ``count``-th step: a call of one of these
    methods, before it and, the next time, behind it. True if there are fewer steps."""
    process = multiprocessing.get_context("fork").Process(target=dies_at, args=(work, traps, count))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode == 0


def dies_at(work: Callable[[], object], traps: list[tuple[Any, str]], count: int) -> None:
    left = [count]

    def step() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, method in traps:
        setattr(owner, method, _trapped(getattr(owner, method), step))
    work()


def _trapped(original: Callable[..., Any], step: Callable[[], None]) -> Callable[..., Any]:
    def trapped(*arguments: Any, **named: Any) -> Any:
        step()
        result = original(*arguments, **named)
        step()
        return result

    return trapped
