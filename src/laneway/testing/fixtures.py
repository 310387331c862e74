"""pytest fixtures: ``pytest_plugins = ["laneway.testing.fixtures"]``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway.client.sync.queue import Queue


@pytest.fixture
def laneway_queue(tmp_path: Path) -> Iterator[Queue]:
    """An empty queue of this test's own, in a SQLite file."""
    with Queue(f"sqlite:///{tmp_path}/laneway.db") as queue:
        queue.install()
        yield queue
