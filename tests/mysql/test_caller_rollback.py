"""A verb that fails on a caller's connection is undone, also if the caller commits."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.errors import PayloadTooLarge
from tests.model.mysql import connect
from tests.mysql.test_caller_connections import SYNC

LOCK_WAIT = 1205


@pytest.fixture
def small_packets(mariadb: EmbeddedMariaDB) -> Iterator[None]:
    """For new sessions."""
    mariadb.execute("set global max_allowed_packet = 1048576")
    yield
    mariadb.execute("set global max_allowed_packet = 16777216")


@pytest.mark.parametrize("name", SYNC)
def test_a_partial_publish_is_undone(
    small_packets: None, queue: Queue, url: str, name: str
) -> None:
    """Else the first ones would be messages without wakes, with keys that are never released."""
    batch = [NewMessage(b"x" * 400_000, key="first"), NewMessage(b"x" * 400_000)]
    with SYNC[name](url) as (mine, commit, _):
        queue.publish("kept", connection=mine)
        with pytest.raises(PayloadTooLarge):
            queue.publish_many([*batch, NewMessage(b"x" * 900_000)], connection=mine)
        commit()
    assert queue.publish("again", key="first").status == "published"
    assert [message.text() for message in queue.claim(10)] == ["kept", "again"]


def test_a_partial_completion_is_undone(queue: Queue, url: str) -> None:
    """After a lock wait timeout, here on the key, MySQL rolls back only that statement."""
    queue.publish("x", key="k")
    (message,) = queue.claim()
    with closing(connect(url)) as other, closing(connect(url)) as mine:
        with other.cursor() as cursor:
            cursor.execute("select id from laneway_dedupe for update")
        with mine.cursor() as cursor:
            cursor.execute("set session innodb_lock_wait_timeout = 1")
        with pytest.raises(Exception, match=str(LOCK_WAIT)):
            message.complete(connection=mine)
        mine.commit()
    message.complete()
    assert queue.publish("again", key="k").status == "published"
