"""pytest fixtures: ``pytest_plugins = ["penstock.testing.fixtures"]``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.sync_queue import Queue


@pytest.fixture
def penstock_queue(tmp_path: Path) -> Iterator[Queue]:
    """An empty queue of this test's own, in a SQLite file."""
    with Queue(f"sqlite:///{tmp_path}/penstock.db") as queue:
        queue.install()
        yield queue
