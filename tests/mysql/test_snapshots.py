"""Callers whose transactions read an old snapshot, or uncommitted changes."""

import time
from contextlib import closing
from typing import Any

import pytest

from laneway import Queue
from laneway.errors import DatabaseFailed
from tests.model.mysql import connect


@pytest.mark.parametrize("level", ["repeatable read", "read committed"])
def test_a_key_that_an_old_snapshot_shows_is_free(queue: Queue, url: str, level: str) -> None:
    """Its message ended after the caller's transaction first read, and before it publishes."""
    first = queue.publish("first", key="k")
    caller = connect(url)
    with caller.cursor() as cursor:
        cursor.execute(f"set session transaction isolation level {level}")
        cursor.execute("select count(*) from laneway_dedupe")
    (message,) = queue.claim()
    message.complete()
    second = queue.publish("second", key="k", connection=caller)
    third = queue.publish("third", key="k", connection=caller)
    caller.commit()
    caller.close()
    assert second.status == "published" and second.id != first.id
    assert (third.status, third.id) == ("existing", second.id)
    assert [m.text() for m in queue.claim(9)] == ["second"]


@pytest.mark.parametrize("options", [{}, {"use_unicode": False}])
def test_the_same_with_a_driver_that_returns_bytes(
    queue: Queue, url: str, options: dict[str, Any]
) -> None:
    queue.publish("first", key="k")
    caller = connect(url, **options)
    with caller.cursor() as cursor:
        cursor.execute("select count(*) from laneway_dedupe")
    queue.complete(queue.claim())
    assert queue.publish("second", key="k", connection=caller).status == "published"
    caller.commit()
    caller.close()


def test_a_key_that_was_never_committed_is_waited_for(queue: Queue, url: str) -> None:
    """Reading uncommitted changes would return an id that a rollback removes."""
    with closing(connect(url)) as other, closing(connect(url)) as mine:
        with mine.cursor() as cursor:
            cursor.execute("set session transaction isolation level read uncommitted")
            cursor.execute("set session innodb_lock_wait_timeout = 1")
        queue.publish("undone", key="k", connection=other)
        with pytest.raises(Exception, match="Lock wait"):
            queue.publish("kept", key="k", connection=mine)
        other.rollback()
        assert queue.publish("kept", key="k", connection=mine).status == "published"
        mine.commit()
    assert [message.text() for message in queue.claim(9)] == ["kept"]


def test_a_message_is_replaced_in_read_committed_only(queue: Queue, url: str) -> None:
    """An old snapshot does not show whether it is leased."""
    queue.publish("first", key="k")
    with closing(connect(url)) as mine:
        with pytest.raises(DatabaseFailed, match="READ COMMITTED"):
            queue.publish("second", key="k", on_duplicate="replace", connection=mine)
        mine.rollback()
        with mine.cursor() as cursor:
            cursor.execute("set session transaction isolation level read committed")
        mine.commit()
        for end in (mine.rollback, mine.commit):
            result = queue.publish(end.__name__, key="k", on_duplicate="replace", connection=mine)
            assert result.replaced
            end()
    assert [message.text() for message in queue.claim(9)] == ["commit"]


@pytest.mark.parametrize("verb", ["complete", "defer", "extend"])
def test_a_lost_lease_in_an_open_transaction_blocks_no_claim(
    queue: Queue, url: str, verb: str
) -> None:
    """Reading a missing lease must not lock the gap where all claims add theirs."""
    queue.publish_many(["before", "done"])
    before, done = queue.claim(2)
    queue.complete([done])
    wait_for_purge(url)
    with closing(connect(url)) as mine:
        answers = getattr(queue, verb)([before, done], connection=mine)
        assert [answer.lost for answer in answers] == [False, True]
        queue.publish_many(["after", "later"])
        with closing(connect(url)) as observer, observer.cursor() as cursor:
            cursor.execute("set session innodb_lock_wait_timeout = 1")
            add = "insert into laneway_lease values (%s, 1, 0, 0, '', false, '')"
            cursor.execute(add, [before.id + 9])
        mine.commit()
    assert [message.text() for message in queue.claim(10)][-2:] == ["after", "later"]
    assert len(queue.history(done.id)) == 2


def test_an_old_snapshot_hides_no_event(queue: Queue, url: str) -> None:
    with closing(connect(url)) as mine, queue.events(what=["completed"]) as events:
        with mine.cursor() as cursor:
            cursor.execute("select count(*) from laneway_message")
        queue.publish("x")
        (message,) = queue.claim()
        message.complete(connection=mine)
        mine.commit()
        queue.publish("last")
        queue.complete(last := queue.claim())
        assert next(events).message_id == message.id
        assert next(events).message_id == last[0].id


def wait_for_purge(url: str) -> None:
    """Until then a deleted row still exists, and is locked instead of the gap."""
    with closing(connect(url)) as observer, observer.cursor() as cursor:
        for _ in range(500):
            cursor.execute(
                "select `count` from information_schema.innodb_metrics "
                "where name = 'trx_rseg_history_len'"
            )
            if int(cursor.fetchone()[0]) == 0:
                return
            time.sleep(0.01)


def test_an_old_snapshot_does_not_slow_claims_down(queue: Queue, url: str) -> None:
    """What was deleted since then stays in the indexes: a claim that got something does not read
    through it to find out whether that was all."""
    queue.channel("limited").limit(concurrency=1)

    def pages_of(cycles: int) -> float:
        before = pages()
        for _ in range(cycles):
            queue.publish(1, channel="limited")
            queue.complete(queue.claim(5))
        return (pages() - before) / cycles

    def pages() -> int:
        with closing(connect(url)) as other, other.cursor() as cursor:
            cursor.execute("show global status like 'Innodb_buffer_pool_read_requests'")
            (row,) = cursor.fetchall()
            return int(row[1])

    usual = pages_of(30)
    with closing(connect(url)) as reader:
        with reader.cursor() as cursor:
            cursor.execute("start transaction with consistent snapshot")
            cursor.execute("select count(*) from laneway_wake")
        pages_of(150)
        assert pages_of(30) < 2 * usual
