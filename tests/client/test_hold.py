"""hold: what a worker's heartbeat asks of an engine, for all its leases at once."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from laneway import Message, Queue
from laneway.contract import Hold
from tests.model.mysql import connect as connect_mysql
from tests.place import fresh_schema
from tests.stores import STORES, Databases

HOUR = timedelta(hours=1)
OPEN_TRANSACTIONS = [name for name in STORES if not name.startswith("SQLite")]


@pytest.fixture(params=STORES)
def queue(request: pytest.FixtureRequest) -> Iterator[Queue]:
    databases: Databases = request.getfixturevalue(STORES[request.param].fixture)
    with Queue(databases.create_database(fresh_schema()), upkeep_every=None) as queue:
        queue.install()
        yield queue


def claimed(queue: Queue, count: int) -> list[Message]:
    queue.publish_many(list(range(count)))
    return list(queue.claim(count))


def hold(queue: Queue, leases: list[tuple[int, int]], span: timedelta = HOUR) -> list[Hold]:
    return queue.database.run(queue.database.engine.leases.hold(leases, span))


def lease_of(message: Message) -> tuple[int, int]:
    return message.id, message.fence


def until(queue: Queue, message: Message) -> datetime:
    found = queue.message(message.id)
    assert found is not None and found.until is not None
    return found.until


def caller(queue: Queue) -> Any:
    """A connection of the caller's own, in a transaction."""
    url = queue._address.url
    return psycopg.connect(url) if url.startswith("postgresql") else connect_mysql(url)


def test_each_is_answered_for_itself_and_nothing_is_noted(queue: Queue) -> None:
    kept, done, other = claimed(queue, 3)
    done.complete()
    stale = (other.id, other.fence + 1000)
    answers = hold(queue, [lease_of(done), stale, lease_of(kept)])
    assert answers == ["lost", "lost", "extended"]
    assert until(queue, kept) > kept.until + HOUR / 2
    assert until(queue, other) == other.until
    assert [entry.outcome for entry in queue.history(done.id)] == ["completed"]
    assert not list(queue.history(other.id))


def test_it_never_shortens(queue: Queue) -> None:
    (message,) = claimed(queue, 1)
    end = message.extend(2 * HOUR)
    assert hold(queue, [lease_of(message)]) == ["extended"]
    assert until(queue, message) == end


@pytest.mark.parametrize("queue", OPEN_TRANSACTIONS, indirect=True)
def test_a_locked_lease_is_left_alone_and_holds_up_no_other(queue: Queue) -> None:
    locked, free = claimed(queue, 2)
    leases = [lease_of(locked), lease_of(free)]
    with closing(caller(queue)) as mine:
        queue.complete([locked], connection=mine)
        assert hold(queue, leases) == ["locked", "extended"]
        mine.rollback()
        assert hold(queue, leases) == ["extended", "extended"]
        queue.complete([locked], connection=mine)
        mine.commit()
    assert hold(queue, leases) == ["lost", "extended"]
    assert [entry.outcome for entry in queue.history(locked.id)] == ["completed"]
