"""What the machine can do at all: commits of one row from several clients."""

import time
from collections.abc import Callable

import psycopg

from .bench import Bench
from .clients import together


def commit_rate(bench: Bench, clients: int = 8, seconds: float = 3.0) -> float:
    """One-row commits a second."""
    with bench.database(installed=False) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table note (id bigserial primary key, text text not null)")
        return together(bench, clients, _client, url, seconds).rate


def _client(wait: Callable[[], None], url: str, seconds: float) -> tuple[int, int]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = 0
        for _ in range(6):
            connection.execute("insert into note (text) values (%s)", ["warm"])
        wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            connection.execute("insert into note (text) values (%s)", ["x" * 200])
            rows += 1
    return rows, rows
