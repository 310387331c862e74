"""PostgreSQL servers that lose what they had acknowledged: by a crash, or by a replica's lag."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta

import psutil
import psycopg

from laneway import Queue
from laneway.dev.chaos.targets import Replica
from laneway.dev.embedded import EmbeddedPostgres, Setting
from laneway.errors import LanewayError
from laneway.plan import Taken

# What is committed without waiting for the disk stays in memory until somebody else waits.
FORGETFUL: dict[str, Setting] = {
    "fsync": False,
    "synchronous_commit": "off",
    "wal_writer_delay": "10s",
    "autovacuum": False,
}
LEASE = timedelta(hours=1)
# More than the 32 numbers that a sequence writes to its log at once.
MANY = 70


def draw(queue: Queue, n: int = MANY) -> tuple[list[int], list[int]]:
    """Ids and fences that were acknowledged: one commit each."""
    ids = [queue.publish({"n": n}).id or 0 for n in range(n)]
    return ids, [int(claim(queue, 1).rows[0][1]) for _ in range(n)]


def claim(queue: Queue, limit: int) -> Taken:
    return queue.database.run(queue.database.engine.claims.claim(("default",), limit, LEASE, "w"))


def stop_writing(server: EmbeddedPostgres) -> None:
    """What was written so far is on the disk. What comes from now on stays in memory, though this
    machine may be slow: the process that writes it is stopped."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("checkpoint")
        row = connection.execute(
            "select pid from pg_stat_activity where backend_type = 'walwriter'"
        ).fetchone()
        assert row is not None
        psutil.Process(row[0]).suspend()


def kill_backend(server: EmbeddedPostgres) -> None:
    """The others are ended by the postmaster, which goes on with empty memory."""
    deadline = time.monotonic() + 60
    with (
        psycopg.connect(server.url(), autocommit=True) as connection,
        psycopg.connect(server.url(), autocommit=True) as other,
    ):
        row = connection.execute("select pg_backend_pid(), pg_postmaster_start_time()").fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            while time.monotonic() < deadline:  # until the postmaster has noticed
                other.execute("select 1")
    started = None
    while started is None:
        try:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                started = connection.execute("select pg_postmaster_start_time()").fetchone()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert started[0] == row[1]


@contextmanager
def replicas(primary: EmbeddedPostgres, n: int) -> Iterator[list[Replica]]:
    with ExitStack() as stack:
        yield [stack.enter_context(_started(Replica(primary))) for _ in range(n)]


@contextmanager
def _started(replica: Replica) -> Iterator[Replica]:
    try:
        replica.start()
        yield replica
    finally:
        replica.close()


def cut_off(primary: EmbeddedPostgres, replicas: Sequence[Replica]) -> None:
    """Waits until they have everything; from now on they get nothing."""
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        deadline = time.monotonic() + 60
        while True:
            row = connection.execute(
                "select count(*) filter (where replay_lsn >= pg_current_wal_flush_lsn()), "
                "pg_current_wal_flush_lsn() = pg_current_wal_insert_lsn(), array_agg(pid) "
                "from pg_stat_replication where state = 'streaming'"
            ).fetchone()
            assert row is not None
            if row[0] == len(replicas) and row[1]:
                break
            # What was not waited for is written when somebody waits.
            connection.execute("set synchronous_commit = on")
            connection.execute("select pg_logical_emit_message(true, '', '')")
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for pid in row[2]:
            psutil.Process(pid).suspend()


def until_up(queue: Queue) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            queue.clock()
        except LanewayError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
