"""One process of the graph test: claims nodes, writes each down in the transaction that completes
it, adds to flows, fails now and then, until it is killed."""

import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from laneway import Message, Queue
from laneway.errors import ConnectionUnavailable, DatabaseFailed, LeaseLost

LEASE = timedelta(seconds=2)
_DEADLOCK = "40P01"
# What was begun too early is written down too: its parents are read before the ledger's own row.
_NOTE = """
insert into ledger (node, early)
select %(id)s, exists (
    select from laneway.flow_edge e join laneway.flow_node p on p.id = e.parent
    where e.child = %(id)s and case when e.strict then p.state <> 'completed'
        else p.state in ('held', 'live', 'dead') and not p.died end)
"""


def _work(queue: Queue, connection: psycopg.Connection[Any], rng: random.Random) -> int:
    messages = list(queue.claim(rng.randint(1, 8)))
    rng.shuffle(messages)
    for start in range(0, len(messages), 3):
        _settle(queue, connection, messages[start : start + 3], rng)
    return len(messages)


def _settle(
    queue: Queue, connection: psycopg.Connection[Any], part: list[Message], rng: random.Random
) -> None:
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
    with connection.transaction():
        for message in part:
            connection.execute(_NOTE, {"id": message.id})
        answers = queue.complete(part, connection=connection)
        if any(answer.lost for answer in answers):
            raise psycopg.Rollback


def main(url: str, name: str, end: Path) -> None:
    rng = random.Random(name)
    while not end.exists():
        try:
            with (
                Queue(url, lease=LEASE, worker=name, upkeep_every=0.2) as queue,
                psycopg.connect(url) as connection,
            ):
                connection.commit()
                connection.autocommit = True
                while not end.exists():
                    if not _work(queue, connection, rng):
                        time.sleep(0.02)
        except LeaseLost:
            pass
        except (ConnectionUnavailable, psycopg.OperationalError, DatabaseFailed) as error:
            if getattr(error, "sqlstate", None) == _DEADLOCK:
                (end.parent / f"deadlock {name}").write_text(str(error))
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
