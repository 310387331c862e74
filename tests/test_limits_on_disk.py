"""Shared limits on PostgreSQL are unlocked before the disk has what was decided, and what starts is
answered when it has."""

from datetime import timedelta

import psycopg

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.caller.sync import run_on
from laneway.engines.postgresql import PostgresqlEngine

# Nobody else writes the log to the disk meanwhile.
SETTINGS = {"wal_writer_delay": 10_000, "autovacuum": False}


def test_what_was_answered_is_there_after_a_crash() -> None:
    with EmbeddedPostgres(settings=SETTINGS) as server:
        url = server.create_database("limits")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            queue.limits["api"].set(concurrency=2)
            queue.publish_many([NewMessage("x", limits=["api"])] * 2)
            held = list(queue.claim(10))
            assert len(held) == 2
        server.kill()
        server.start()
        with Queue(url, upkeep_every=None) as queue:
            assert queue.limits["api"].get().running == 2
            queue.publish_many([NewMessage("x", limits=["api"])] * 2)
            assert not queue.claim(10)
            assert not any(answer.lost for answer in queue.complete(held))
            claims = [queue.claim(10) for _ in range(3)]
            started = [message for claim in claims for message in claim]
            assert len(started) == 2
        server.kill()
        server.start()
        with Queue(url, upkeep_every=None) as queue:
            assert queue.limits["api"].get().running == 2
            assert not any(answer.lost for answer in queue.complete(started))


def test_a_callers_commit_waits_for_the_disk_as_ever(server: EmbeddedPostgres) -> None:
    engine, database = PostgresqlEngine(), server.create_database("limits_on_disk")
    with Queue(database, upkeep_every=None) as queue:
        queue.install()
        queue.limits["api"].set(concurrency=1)
        queue.publish_many([NewMessage("x", limits=["api"])] * 3)
    with psycopg.connect(database) as connection:
        connection.execute("set synchronous_commit = on")
        for _ in range(3):
            plan = engine.claim(("default",), 10, timedelta(minutes=1), "w")
            taken = run_on(connection, "postgresql", plan)
            shown = connection.execute("show synchronous_commit").fetchone()
            assert shown == ("on",)
            connection.execute("delete from laneway.lease")
        assert taken.rows
