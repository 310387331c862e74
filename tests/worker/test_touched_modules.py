"""How far a message goes through the code of a running worker."""

import pytest

from benchmarks.touched_modules import touched_modules
from laneway import Queue
from tests.place import Place

MAX_MODULES = 15


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_message_touches_few_modules(place: Place, driver: str) -> None:
    url = place.asyncpg_url if driver == "asyncpg" else place.psycopg_url
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
    found = touched_modules(url, schema=place.schema)
    assert len(found) <= MAX_MODULES, found
    assert {"laneway.worker.run.loop", "laneway.payload"} <= set(found), "it was traced"
