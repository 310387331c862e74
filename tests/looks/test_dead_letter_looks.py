"""Whatever is looked for among dead letters, a look reads a fixed number and says how to go on."""

from importlib import import_module
from typing import Any

import pytest

from laneway import Queue
from laneway.model import DeadLetter
from tests.stores import STORES, Databases

_LOOK = 40
_MANY = 130
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
    engine = queue._core.engine
    started = queue.operations.start("discard", queue="default", reason="seldom")
    steps = []
    while True:
        step = queue._core.run(engine.step_operation(started.id, 2), atomic=True)
        if step is None:
            break
        steps.append(step.done)
    assert steps[-1] == 4 and len(steps) >= _MANY // 10
    assert max(after - before for before, after in zip([0, *steps], steps, strict=False)) == 2
