"""Tasks that are called the way Celery's are."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from laneway import Queue, Worker
from laneway.errors import InvalidCall, MessageDead, NotEnded
from laneway.integrations.celery import celery_style
from laneway.retry import NoRetry


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path / 'queue.db'}") as queue:
        queue.install()
        yield queue


def test_calls_and_results(queue: Queue) -> None:
    worker = Worker(queue)

    @celery_style
    @worker.task(keep_result=60)
    def add(a: int, b: int = 0) -> int:
        return a + b

    @celery_style
    @worker.task(retry=NoRetry())
    def fail() -> None:
        raise ValueError("no")

    assert add(1, 2) == 3
    calls = [add.delay(1, 2), add.apply_async([3], {"b": 4}, countdown=0)]
    failing = fail.delay()
    assert [call.state for call in (*calls, failing)] == ["PENDING"] * 3
    with pytest.raises(NotEnded):
        failing.get(timeout=0)
    worker.run(until_empty=True)
    assert [call.get(timeout=10) for call in calls] == [3, 7]
    assert [call.state for call in (*calls, failing)] == ["SUCCESS", "SUCCESS", "FAILURE"]
    assert calls[0].successful() and failing.failed() and failing.ready()
    with pytest.raises(MessageDead):
        failing.get(timeout=10)
    with pytest.raises(InvalidCall):
        add.apply_async(["a", 1, 2])


def test_options_of_one_call(queue: Queue) -> None:
    worker = Worker(queue)

    @celery_style
    @worker.task(queue="emails", channel="nobody")
    def send(order: int) -> None: ...

    eta = datetime.now(UTC) + timedelta(hours=1)
    later = send.apply_async(
        [1], eta=eta, expires=7200, priority=9, task_id="one", headers={"a": 1}
    )
    found = queue.message(int(later.id))
    assert found is not None and found.expires_at is not None
    assert (found.queue, found.channel, found.key) == ("emails", "nobody", "one")
    assert (found.due, found.priority, found.headers) == (eta, 9, {"a": 1})
    assert send.apply_async([2], task_id="one").id == later.id
    other = send.apply_async([3], queue="mail", channel="tenant-42", expires=eta)
    found = queue.message(int(other.id))
    assert found is not None
    assert (found.queue, found.channel, found.expires_at) == ("mail", "tenant-42", eta)
    other.revoke()
    assert other.state == "REVOKED"
