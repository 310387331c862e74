"""Whatever is looked for among dead letters, a look reads a fixed number and says how to go on."""

from contextlib import closing
from importlib import import_module
from typing import Any

import pymysql
import pytest

from laneway import Queue
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.mysql.url import connect_options, database_of
from laneway.drivers.runner import drive
from laneway.model import DeadLetter, DeadLetterFilter
from tests.stores import STORES, Databases

_LOOK = 40
_MANY = 130
_STEP = 10
_DIALECTS = {"PostgreSQL 18": "postgresql", "MariaDB": "mysql", "SQLite": "sqlite"}


def _dead(queue: Queue) -> None:
    """Rare ones are the oldest, the newest, and one in the middle."""
    rare = (0, 1, 64, _MANY - 1)
    for n in range(_MANY):
        queue.publish(n, channel="rare" if n in rare else "often", kind="mail")
        (message,) = queue.claim(1)
        kind = LookupError if n in rare else ValueError
        message.fail("seldom" if n in rare else "always", error=kind("no"))


def _walk(queue: Queue, /, **by: Any) -> list[DeadLetter]:
    """All pages, to the last one."""
    found: list[DeadLetter] = []
    after, pages = None, 0
    while True:
        page = queue.dead_letters.list(**by, limit=100, after=after)
        found += page
        pages += 1
        if page.next is None:
            assert pages > _MANY // _LOOK, "no page looked at more than its part"
            return found
        after = page.next


@pytest.fixture(params=list(_DIALECTS))
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Queue:
    module = import_module(f"laneway.engines.{_DIALECTS[request.param]}.dead_letters")
    monkeypatch.setattr(module, "LOOK", _LOOK)
    monkeypatch.setattr(module, "COUNT_STEP", _STEP, raising=False)
    databases: Databases = request.getfixturevalue(STORES[request.param].fixture)
    queue = Queue(
        databases.create_database(f"letters {request.node.originalname}"[:60]), upkeep_every=None
    )
    request.addfinalizer(queue.close)
    queue.install()
    _dead(queue)
    return queue


def test_a_rare_filter_is_bounded_and_misses_nothing(queue: Queue) -> None:
    filters: list[dict[str, Any]] = [
        {"reason": "seldom"},
        {"queue": "default", "reason": "seldom"},
        {"queue": "default", "channel": "rare"},
        {"error_type": "LookupError"},
        {"queue": "default", "error_type": "LookupError", "kind": "mail"},
    ]
    for by in filters:
        found = _walk(queue, **by)
        assert [letter.channel for letter in found] == ["rare"] * 4, by
        assert [letter.id for letter in found] == sorted((x.id for x in found), reverse=True)
        count = queue.dead_letters.count(**by)
        assert (count, count.or_more) == (1, True), by
    assert _walk(queue, queue="default", kind="none") == []
    none = queue.dead_letters.count(queue="default", kind="none")
    assert (none, none.or_more) == (0, True)
    everything = queue.dead_letters.count(queue="default")
    assert (everything, everything.or_more) == (_MANY, False)
    some = queue.dead_letters.count(queue="default", limit=_MANY - 1)
    assert (some, some.or_more) == (_MANY - 1, True)


def test_a_count_by_queue_and_times_is_exact_up_to_its_limit(queue: Queue) -> None:
    """Wherever it begins and ends, and if many died at the same time."""
    letters = sorted(queue.dead_letters.list(limit=_MANY), key=lambda letter: letter.died_at)
    for first, last in ((0, 1), (3, 43), (7, 128), (64, 65), (99, 119)):
        times: dict[str, Any] = {
            "since": letters[first].died_at,
            "until": letters[last].died_at,
        }
        for limit in (1, _STEP - 1, _STEP, _STEP + 1, last - first, 1000):
            expected = min(last - first, limit), last - first > limit
            for name in ("default", None):
                count = queue.dead_letters.count(queue=name, **times, limit=limit)
                assert (count, count.or_more) == expected, (first, last, limit, name)
            count = queue.dead_letters.count(queue="none", **times, limit=limit)
            assert (count, count.or_more) == (0, False)
    queue.publish_many(range(35))
    queue.fail(queue.claim(35), "no")
    since = queue.dead_letters.list(limit=1)[0].died_at
    for limit in (34, 35, 36):
        count = queue.dead_letters.count(queue="default", since=since, limit=limit)
        assert (count, count.or_more) == (min(35, limit), limit < 35)
    assert queue.dead_letters.count(since=letters[0].died_at) == _MANY + 35


def test_groups_are_of_the_newest(queue: Queue) -> None:
    groups = queue.dead_letters.groups()
    assert (groups.looked, groups.complete) == (_LOOK, False)
    assert sum(group.count for group in groups.groups) == _LOOK


@pytest.mark.parametrize("queue", ["MariaDB"], indirect=True)
def test_a_count_reads_each_letter_once(queue: Queue) -> None:
    url = queue._address.url
    connection = pymysql.connect(database=database_of(url), **connect_options(url))
    with closing(connection), connection.cursor() as cursor:

        def read(limit: int) -> int:
            cursor.execute("flush status")
            plan = queue.database.engine.dead_letters.count_dead_letters(
                DeadLetterFilter("default"), limit
            )
            drive(plan, lambda statement: _execute(connection, statement))
            cursor.execute("show session status like 'Handler_read%'")
            first = sum(int(n) for _, n in cursor.fetchall())
            cursor.execute("show session status like 'Handler_tmp_write'")
            ((_, written),) = cursor.fetchall()
            assert int(written) <= _STEP + 1
            return first

        # An entry each, one more for each step where it begins, and the count of the last step.
        assert read(100) < 100 + 2 * _STEP + 10
        assert read(1000) < _MANY + 3 * _STEP + 13


def test_an_operation_takes_what_the_preview_did_not_reach(queue: Queue) -> None:
    seen = queue.operations.preview(queue="default", error_type="LookupError")
    assert (seen.count, seen.or_more, len(seen.sample)) == (1, True, 1)
    started = queue.operations.start(
        "redrive", queue="default", error_type="LookupError", expected=1
    )
    assert started.total is None
    ended = queue.operations.run(started.id)
    assert (ended.state, ended.done) == ("done", 4)
    assert {message.channel for message in queue.claim(100)} == {"rare"}
    assert queue.dead_letters.discard(queue="default", kind="mail", reason="always") == _MANY - 4
    assert queue.dead_letters.list() == []


def test_a_step_passes_by_a_fixed_number(queue: Queue) -> None:
    """One part at a time, whatever is found in it."""
    engine = queue.database.engine
    started = queue.operations.start("discard", queue="default", reason="seldom")
    steps = []
    while True:
        step = queue.database.run(engine.operations.step_operation(started.id, 2), atomic=True)
        if step is None:
            break
        steps.append(step.done)
    assert steps[-1] == 4 and len(steps) >= _MANY // 10
    assert max(after - before for before, after in zip([0, *steps], steps, strict=False)) == 2
