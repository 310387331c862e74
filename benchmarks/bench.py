"""The server all benchmarks run on, and a fresh database for each measurement."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from psycopg import sql

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres, Setting

# Durable, as in production. Checkpoints are kept out of the runs: they would hit one side of a
# comparison and not the other.
SETTINGS: dict[str, Setting] = {
    "fsync": True,
    "synchronous_commit": "on",
    "full_page_writes": True,
    "shared_buffers": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "max_connections": 100,
}
PAYLOAD = b"x" * 200
CHUNK = 1000


class Bench:
    """A running server that hands out databases."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        self._numbers = count(1)

    @contextmanager
    def database(self, *, installed: bool = True) -> Iterator[str]:
        """The URL of a new database, which is dropped at the end."""
        name = f"bench_{next(self._numbers)}"
        url = self.server.create_database(name)
        try:
            if installed:
                with Queue(url) as queue:
                    queue.install()
                    queue.upkeep()  # makes today's partition of the history
            yield url
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            connection.execute(drop)


@contextmanager
def running(settings: dict[str, Setting] | None = None) -> Iterator[Bench]:
    """A server on loopback, stopped and removed at the end."""
    with EmbeddedPostgres(version=18, settings=settings or SETTINGS) as server:
        yield Bench(server)


def tidy(url: str) -> None:
    """What autovacuum would do sooner or later, done now."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)
