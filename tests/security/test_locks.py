"""Whoever is connected to a database of PostgreSQL may take any advisory lock, so may hold us up;
docs/how-to/roles.md says how to let nobody else connect, and this that it helps."""

import psycopg
import pytest

from laneway import ClaimStatus, Queue
from laneway.dev.embedded import EmbeddedPostgres

SCHEMA = "locking"
LOCKS = b"""
select pg_advisory_lock(hashtextextended('default', oid::bigint)),
    pg_advisory_lock(hashtextextended('locking.upkeep', 0))
from pg_class where relname = 'pause' and relnamespace::regnamespace::text = 'locking'
"""
REMEDY = (
    b"revoke connect on database locks from public",
    b"grant connect on database locks to locking_producer, locking_viewer",
)
OTHERS = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'outsider'"


def test_whoever_may_not_connect_holds_nothing_up(server: EmbeddedPostgres) -> None:
    url = server.create_database("locks")
    with (
        Queue(url, schema=SCHEMA, upkeep_every=None) as queue,
        psycopg.connect(url, autocommit=True) as admin,
    ):
        queue.install()
        queue.install_roles()
        queue.publish(1)
        admin.execute("create role outsider login")
        for role in ("producer", "consumer"):
            admin.execute(f"create role {SCHEMA}_{role}_1 login in role {SCHEMA}_{role}".encode())
        outsider = psycopg.connect(url.replace("postgres@", "outsider@"), autocommit=True)
        outsider.execute(LOCKS)
        assert queue.claim().status is ClaimStatus.BUSY
        assert not queue.upkeep().ran

        for statement in REMEDY:
            admin.execute(statement)
        assert queue.claim().status is ClaimStatus.BUSY, "who is connected stays so"
        admin.execute(OTHERS)
        with pytest.raises(psycopg.OperationalError):
            outsider.execute("select 1")
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(url.replace("postgres@", "outsider@"))
        for role in ("producer", "consumer"):
            theirs = url.replace("postgres@", f"{SCHEMA}_{role}_1@")
            with Queue(theirs, schema=SCHEMA, upkeep_every=None) as client:
                client.publish(2)
                if role == "consumer":
                    messages = client.claim(10)
                    assert len(messages) == 3
                    client.complete(messages)
        assert queue.upkeep().ran
