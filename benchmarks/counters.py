"""What a run cost the server: WAL, write transactions, processor time."""

import time
from typing import NamedTuple

import psutil
import psycopg

from .bench import Bench


class Counters(NamedTuple):
    """Totals since the server began, or a difference of two of them."""

    wal: float
    commits: float
    server: float
    python: float = 0.0

    def since(self, earlier: "Counters") -> "Counters":
        return Counters(*(now - then for now, then in zip(self, earlier, strict=True)))

    def per(self, messages: int) -> "Counters":
        """For one message, processor time in microseconds."""
        wal, commits, server, python = (total / messages for total in self)
        return Counters(wal, commits, server * 1e6, python * 1e6)


def read(bench: Bench, python: float | None = None) -> Counters:
    """``python`` is the processor time of the clients; by default of this process."""
    with psycopg.connect(bench.server.url(), autocommit=True) as connection:
        row = connection.execute(
            "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
    assert row is not None
    spent = time.process_time() if python is None else python
    return Counters(float(row[0]), float(row[1]), server_seconds(bench), spent)


def statements(bench: Bench, url: str) -> int:
    """How many transactions a database has seen, each one statement in autocommit. Sessions report
    when they end."""
    with psycopg.connect(bench.server.url(), autocommit=True) as connection:
        row = connection.execute(
            "select xact_commit from pg_stat_database where datname = %s", [url.rsplit("/", 1)[1]]
        ).fetchone()
    assert row is not None
    return int(row[0])


def server_seconds(bench: Bench) -> float:
    """Processor time of all processes of the server, those that have ended included."""
    first = _server_seconds(bench)
    time.sleep(0.05)
    # One that ends while we add up is missed; the total never falls, so the higher one is right.
    return max(first, _server_seconds(bench))


def _server_seconds(bench: Bench) -> float:
    pid = int((bench.server.data / "postmaster.pid").read_text().partition("\n")[0])
    postmaster = psutil.Process(pid)
    ended = postmaster.cpu_times()
    total = float(ended.children_user + ended.children_system)
    for process in [postmaster, *postmaster.children()]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total
