"""Calls that would do nothing, or not what was meant, say so."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import AsyncQueue, NewMessage, Queue, Tasks, Worker
from laneway.errors import InvalidCall, InvalidTime
from tests.client.worlds import run_async

HOUR = timedelta(hours=1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/queue.db"


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        yield queue


def test_a_flow_without_its_block(queue: Queue) -> None:
    flow = queue.flow("import")
    with pytest.raises(InvalidCall, match=r"write with queue\.flow"):
        flow.add(1)
    assert not queue.messages()


@run_async
async def test_an_async_flow_without_its_block(queue: Queue, url: str) -> None:
    async with AsyncQueue(url) as mine:
        with pytest.raises(InvalidCall, match="async with for an AsyncQueue"):
            mine.flow("import").add(1)


def test_nodes_that_were_not_published_have_no_id(queue: Queue) -> None:
    with queue.flow("import") as first:
        node = first.add(1)
        with pytest.raises(InvalidCall, match="it is published when the with block ends"):
            _ = node.id
    assert node.id > 0
    with queue.flow("import") as second:
        node = second.add(1)
    assert second.existing
    with pytest.raises(InvalidCall, match=r"a flow 'import' that has not ended was there"):
        _ = node.id
    with pytest.raises(ZeroDivisionError), queue.flow("other") as broken:
        node = broken.add(1)
        _ = 1 // 0
    with pytest.raises(InvalidCall, match="nothing was published"):
        _ = node.id


NOW = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 60, "expires_in": 30},
        {"delay": HOUR, "expires_in": HOUR},
        {"at": NOW, "expires_at": NOW - HOUR},
    ],
)
def test_a_message_that_expires_before_it_is_due(queue: Queue, options: Any) -> None:
    task = Tasks().task("work")(lambda n: None)
    for publish in (
        lambda: queue.publish(1, **options),
        lambda: queue.publish_many([NewMessage(1, **options)]),
        lambda: queue.topic("t").publish(1, **options),
        lambda: task.using(client=queue, **options).publish(1),
    ):
        with pytest.raises(InvalidTime, match="expires before it is due, so that it never starts"):
            publish()
    assert not queue.messages()
    queue.publish(1, delay=30, expires_in=60)


def test_a_closed_client_that_is_used_again(url: str, caplog: pytest.LogCaptureFixture) -> None:
    client = Queue(url)
    with client:
        client.install()
    with client:  # says itself that it will be closed again
        client.publish(1)
    assert not caplog.messages
    client.publish(2)
    client.publish(3)
    (line,) = caplog.messages
    assert "a client was used after close(): it opened new connections" in line
    client.close()


@run_async
async def test_a_sync_publish_in_an_event_loop(queue: Queue) -> None:
    task = Tasks().task("work")(lambda n: None).using(client=queue)
    for publish, instead in (
        (lambda: queue.publish(1), r"write await queue\.publish\(\) with an AsyncQueue"),
        (lambda: queue.publish_many([1]), r"write await queue\.publish_many\(\)"),
        (lambda: queue.topic("t").publish(1), r"write await queue\.publish\(\)"),
        (lambda: queue.topic("t").publish_many([1]), r"write await queue\.publish_many\(\)"),
        (lambda: task.publish(1), r"write await work\.apublish\(\)"),
    ):
        with pytest.raises(InvalidCall, match=f"would block the event loop: {instead}"):
            publish()
    await asyncio.to_thread(queue.publish, 1)
    assert len(await asyncio.to_thread(queue.messages)) == 1


def test_a_sync_publish_in_the_run_sync_of_a_session(queue: Queue, url: str) -> None:
    """There it neither blocks nor has another choice."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    task = Tasks().task("work")(lambda n: None).using(client=queue)

    async def publish() -> None:
        engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with AsyncSession(engine) as session, session.begin():
            await session.run_sync(lambda inner: queue.publish(1, connection=inner))
            await session.run_sync(lambda inner: task.using(connection=inner).publish(2))
        await engine.dispose()

    asyncio.run(publish())
    assert len(queue.messages()) == 2


@run_async
async def test_a_sync_publish_while_a_loop_runs_but_no_task(queue: Queue) -> None:
    """As in the sync API of Playwright, whose callers are greenlets within a loop."""
    task = Tasks().task("work")(lambda n: None).using(client=queue)
    done = asyncio.Event()

    def publish() -> None:
        queue.publish(1)
        task.publish(2)
        done.set()

    asyncio.get_running_loop().call_soon(publish)
    await asyncio.wait_for(done.wait(), 60)
    assert len(await asyncio.to_thread(queue.messages)) == 2


def test_a_queue_that_nobody_publishes_to(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(queue)
    task = worker.task(queue="emails")(_send)
    task.publish(1)
    queue.publish(1, queue="receipts")
    worker.override(queues=["emials", "recipts", "receipts", "emails", "strange"])
    with caplog.at_level("INFO", "laneway.worker"):
        worker.run(until_empty=True)
    said = [line for line in caplog.messages if line.startswith("nothing is in the queue")]
    assert said == [
        "nothing is in the queue 'emials': did you mean 'emails'?",
        "nothing is in the queue 'recipts': did you mean 'receipts'?",
        "nothing is in the queue 'strange', and none of its tasks goes there",
    ]


def _send(n: int) -> None: ...


def test_a_limit_that_nobody_has_set(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    queue.limits["stripe"].set(concurrency=20)
    worker = Worker(queue)
    worker.handler("send")(_send)
    for limits in (["strpe"], ["strpe", "stripe"], ["other"]):
        queue.publish(1, kind="send", limits=limits)
    worker.run(until_empty=True)
    said = [line for line in caplog.messages if "messages name the limit" in line]
    assert len(said) == 2
    assert "'other', which nobody has set, so it holds nothing back: set it with" in said[0]
    assert "'strpe', which nobody has set, so it holds nothing back: did you mean 'str" in said[1]
