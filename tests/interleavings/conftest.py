"""A database with the schema for each server version, and a stepper on it."""

from collections.abc import Iterator

import psycopg
import pytest

from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.postgresql.schema import install_sql
from tests.interleavings.world import World
from tests.stores import POSTGRESQL_SERVERS


@pytest.fixture(scope="session", params=POSTGRESQL_SERVERS)
def home(request: pytest.FixtureRequest) -> str:
    """The URL of a database with Laneway in the schema "laneway"."""
    server: EmbeddedPostgres = request.getfixturevalue(request.param)
    url = server.create_database("laneway_interleavings")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(install_sql().encode())
        # A deadlock shows at once; the timeout of a claim's lock stays longer.
        connection.execute("alter database laneway_interleavings set deadlock_timeout = '50ms'")
        connection.execute("update laneway.setting set backoff_initial = '0', backoff_max = '0'")
    return url


@pytest.fixture(scope="session")
def world(home: str) -> Iterator[World]:
    with World(home) as running:
        yield running
