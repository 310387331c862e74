"""A database of its own for each test, on the session's MariaDB."""

from collections.abc import Iterator
from itertools import count

import pytest

from penstock import Queue
from penstock.embedded_mariadb import OwnMariaDB

_numbers = count(1)


@pytest.fixture
def url(mariadb: OwnMariaDB) -> str:
    return mariadb.create_database(f"mysql tests {next(_numbers)}")


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        yield queue
