"""One process of the graph test: claims nodes, writes each down in the transaction that completes
it, adds to flows, fails now and then, until it is killed."""

import random
import sqlite3
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pymysql

from laneway import Message, Queue
from laneway.errors import ConnectionUnavailable, DatabaseFailed, LeaseLost
from tests.flows.ledgers import Ledger

LEASE = timedelta(seconds=2)
# Few, where calls meet; and many, so that large graphs come to their end.
CLAIMS = ((1, 1), (8, 3), (100, 50), (200, 200))
"""How many are claimed, and settled together."""
_DEADLOCK = "40P01"
_AWAY = (
    *(ConnectionUnavailable, DatabaseFailed),
    *(psycopg.OperationalError, sqlite3.OperationalError, pymysql.MySQLError, OSError),
)
_TWICE = (psycopg.errors.UniqueViolation, pymysql.err.IntegrityError)


class _LostLease(Exception):
    """The transaction is rolled back."""


def _work(queue: Queue, ledger: Ledger, rng: random.Random) -> int:
    most, size = rng.choice(CLAIMS)
    messages = list(queue.claim(most))
    rng.shuffle(messages)
    for start in range(0, len(messages), size):
        _settle(queue, ledger, messages[start : start + size], rng)
    return len(messages)


def _settle(queue: Queue, ledger: Ledger, part: list[Message], rng: random.Random) -> None:
    if (chance := rng.random()) < 0.1:
        queue.defer(part, 0.05, error="not today")
        return
    if chance < 0.15:
        queue.fail(part, "hopeless")
        return
    for message in part:
        adds = message.json().get("adds", 0)
        if adds:
            # Outside of the transaction: what a killed attempt added must be forgotten.
            with message.flow() as flow:
                pages = [flow.add({"added": n}) for n in range(adds)]
                flow.add({"merge": adds}, after=pages)
    with ledger.transaction():
        ledger.note([message.id for message in part])
        answers = queue.complete(part, connection=ledger.connection)
        if any(answer.lost for answer in answers):
            raise _LostLease


def main(url: str, name: str, end: Path) -> None:
    rng = random.Random(name)
    while not end.exists():
        try:
            with (
                Queue(url, lease=LEASE, worker=name, upkeep_every=0.2) as queue,
                closing(Ledger(url)) as ledger,
            ):
                while not end.exists():
                    try:
                        if not _work(queue, ledger, rng):
                            time.sleep(0.02)
                    except (_LostLease, LeaseLost, *_TWICE):
                        pass
        except _AWAY as error:
            if getattr(error, "sqlstate", None) == _DEADLOCK:
                (end.parent / f"deadlock {name}").write_text(str(error))
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
