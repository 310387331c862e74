"""A new database for each test, on the session's MariaDB."""

from collections.abc import Iterator
from itertools import count

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB

_numbers = count(1)


@pytest.fixture
def url(mariadb: EmbeddedMariaDB) -> str:
    return mariadb.create_database(f"mysql tests {next(_numbers)}")


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        yield queue
