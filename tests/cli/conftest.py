"""The command line on an installed schema of the test server."""

from collections.abc import Iterator

import pytest

from laneway import Queue
from tests.cli.commands import Cli
from tests.place import Place


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema, upkeep_every=None) as client:
        client.install()
        yield client


@pytest.fixture
def cli(queue: Queue, place: Place) -> Cli:
    return Cli(place.url, place.schema)
