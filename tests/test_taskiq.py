"""Taskiq's own receiver, kicker and middlewares on Laneway's broker, on every database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from taskiq import (
    BrokerMessage,
    Context,
    SimpleRetryMiddleware,
    SmartRetryMiddleware,
    TaskiqDepends,
    TaskiqMessage,
    TaskiqMiddleware,
)
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.receiver import Receiver

from laneway import AsyncQueue
from laneway.integrations.taskiq import (
    LanewayBroker,
    LanewayResultBackend,
    LanewayScheduleSource,
    TaskResultMissing,
)
from tests.stores import STORES, Databases

_numbers = count(1)


@pytest.fixture(params=["SQLite", "PostgreSQL 18", "MariaDB"])
def url(request: pytest.FixtureRequest) -> str:
    databases: Databases = request.getfixturevalue(STORES[request.param].fixture)
    return databases.create_database(f"taskiq_{next(_numbers)}")


@pytest.fixture
def file(sqlite_files: Databases) -> str:
    return sqlite_files.create_database(f"taskiq_{next(_numbers)}")


def made(url: str, *middlewares: TaskiqMiddleware, **options: Any) -> LanewayBroker:
    broker = LanewayBroker(AsyncQueue(url, pool_size=4), install=True, concurrency=10, **options)
    broker.with_result_backend(LanewayResultBackend(AsyncQueue(url, pool_size=2)))
    return broker.with_middlewares(*middlewares)


@asynccontextmanager
async def listening(broker: LanewayBroker) -> AsyncIterator[None]:
    """As ``taskiq worker`` does it."""
    receiver = Receiver(broker, max_async_tasks=10, run_startup=False, wait_tasks_timeout=0.1)
    finish = asyncio.Event()
    work = asyncio.create_task(receiver.listen(finish))
    try:
        yield
    finally:
        finish.set()
        await work


def played(broker: LanewayBroker, scene: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        await broker.startup()
        try:
            await scene()
        finally:
            await broker.shutdown()

    asyncio.run(play())


async def until(done: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(30):
        while True:
            if found := await done():
                return found
            await asyncio.sleep(0.01)


async def counted(queue: AsyncQueue) -> tuple[int, int]:
    """Messages that wait or run, and dead letters."""
    alive = await queue.messages()
    return len(alive), len(await queue.messages(state="dead"))


def test_a_call_its_result_and_its_progress(url: str) -> None:
    broker = made(url)

    @broker.task(task_name="add", channel="tenant-42", priority=3)
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    async def scene() -> None:
        task = await add.kiq(1, b=2)
        with pytest.raises(TaskResultMissing):
            await broker.result_backend.get_result(task.task_id)
        (info,) = await broker.queue.messages()
        assert (info.kind, info.channel, info.priority) == ("add", "tenant-42", 3)
        async with listening(broker):
            result = await task.wait_result(check_interval=0.02, timeout=30)
            assert (result.is_err, result.return_value) == (False, {"sum": 3})
            assert await until(lambda: empty(broker))
        backend: Any = broker.result_backend
        await backend.set_progress("other", TaskProgress(state="half", meta={"page": 3}))
        assert not await backend.is_result_ready("other")
        progress = await backend.get_progress("other")
        assert (progress.state, progress.meta) == ("half", {"page": 3})

    played(broker, scene)


async def empty(broker: LanewayBroker) -> bool:
    return await counted(broker.queue) == (0, 0)


def test_a_failed_task_is_a_dead_letter_with_its_error(url: str) -> None:
    broker = made(url)

    @broker.task(task_name="fail")
    def fail() -> None:
        raise ValueError("no such order")

    async def scene() -> None:
        task = await fail.kiq()
        async with listening(broker):
            result = await task.wait_result(check_interval=0.02, timeout=30)
            with pytest.raises(ValueError, match="no such order"):
                result.raise_for_error()
            (dead,) = await until(lambda: dead_letters(broker.queue))
        assert (dead.reason, dead.error_type) == ("error", "ValueError")
        assert "no such order" in dead.error

    played(broker, scene)


async def dead_letters(queue: AsyncQueue) -> list[Any]:
    return list(await queue.dead_letters.list())


@pytest.mark.parametrize("quiet", [True, False])
def test_what_a_middleware_sends_again_has_not_failed(file: str, quiet: bool) -> None:
    broker = made(file, SimpleRetryMiddleware(no_result_on_retry=quiet))
    runs = []

    @broker.task(task_name="flaky", retry_on_error=True, max_retries=5)
    async def flaky() -> int:
        runs.append(1)
        if len(runs) < 3:
            raise TimeoutError
        return len(runs)

    async def scene() -> None:
        task = await flaky.kiq()

        async def returned() -> bool:
            return await task.is_ready() and (await task.get_result()).return_value == 3

        async with listening(broker):
            await until(returned)
            assert await until(lambda: empty(broker))

    played(broker, scene)


def test_a_retry_after_a_delay(file: str) -> None:
    broker = made(file, SmartRetryMiddleware(default_delay=3600))

    @broker.task(task_name="flaky", retry_on_error=True)
    async def flaky() -> None:
        raise TimeoutError

    async def scene() -> None:
        await flaky.kiq()
        async with listening(broker):
            (info,) = await until(lambda: scheduled(broker.queue))
        assert info.due > datetime.now(UTC) + timedelta(minutes=50)
        assert await counted(broker.queue) == (1, 0)

    played(broker, scene)


async def scheduled(queue: AsyncQueue) -> Any:
    return await queue.messages(state="scheduled")


def test_a_task_that_nobody_knows_is_not_thrown_away(file: str) -> None:
    broker = made(file)

    async def scene() -> None:
        message = TaskiqMessage(task_id="1", task_name="gone", labels={}, args=[], kwargs={})
        await broker.kick(broker.formatter.dumps(message))
        async with listening(broker):
            (dead,) = await until(lambda: dead_letters(broker.queue))
        assert "no task 'gone'" in dead.reason

    played(broker, scene)


class Breaks(TaskiqMiddleware):
    def pre_execute(self, message: TaskiqMessage) -> TaskiqMessage:
        raise RuntimeError("broken middleware")


def test_what_is_never_acknowledged_counts_as_an_attempt(file: str) -> None:
    broker = made(file, Breaks())

    @broker.task(task_name="never")
    async def never() -> None: ...

    async def scene() -> None:
        await never.kiq()
        async with listening(broker):
            (info,) = await until(lambda: scheduled(broker.queue))
        assert info.attempt == 1

    played(broker, scene)


def test_a_stop_gives_back_what_has_not_ended(file: str) -> None:
    """And holds nothing that taskiq has not begun."""
    broker = made(file)
    began = asyncio.Event()

    @broker.task(task_name="long")
    async def long() -> None:
        began.set()
        await asyncio.sleep(3600)

    async def scene() -> None:
        for _ in range(30):  # three times what taskiq takes at a time
            await long.kiq()
        async with listening(broker):
            async with asyncio.timeout(30):
                await began.wait()

    played(broker, scene)

    async def look() -> None:
        async with AsyncQueue(file) as queue:
            infos = await queue.messages()
            assert [info.state for info in infos] == ["waiting"] * 30
            assert {info.attempt for info in infos} == {0}

    asyncio.run(look())


def test_manual_acknowledgement(file: str) -> None:
    broker = made(file)

    @broker.task(task_name="manual", ack_type="manual")
    async def manual(context: Context = TaskiqDepends()) -> None:  # noqa: B008
        await context.ack()

    async def scene() -> None:
        await manual.kiq()
        async with listening(broker):
            assert await until(lambda: empty(broker))

    played(broker, scene)


def test_calls_in_the_callers_transaction(server: Any) -> None:
    url = server.create_database(f"taskiq_{next(_numbers)}")
    broker = made(url)

    @broker.task(task_name="receipt")
    async def receipt(order: int) -> None: ...

    async def scene() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            with broker.using(connection=connection):
                await receipt.kiq(1)
            assert await counted(broker.queue) == (0, 0)
            await connection.rollback()
            assert await counted(broker.queue) == (0, 0)
            with broker.using(connection=connection):
                await receipt.kiq(2)
            await connection.commit()
            assert await counted(broker.queue) == (1, 0)

    played(broker, scene)


def test_labels_say_how_a_call_is_published(file: str) -> None:
    broker = made(file, queues=["mail"])

    @broker.task(task_name="send", queue_name="mail")
    async def send(n: int) -> None: ...

    async def scene() -> None:
        call = send.kicker().with_labels(key="one", delay=60, max_attempts=2, expires_in=3600)
        await call.kiq(1)
        await send.kicker().with_labels(key="one").kiq(2)
        (info,) = await broker.queue.messages()
        assert (info.queue, info.key, info.state, info.max_attempts) == (
            "mail",
            "one",
            "scheduled",
            2,
        )
        assert info.expires_at is not None

    played(broker, scene)


def test_schedules_need_no_scheduler(file: str) -> None:
    broker = made(file)
    source = LanewayScheduleSource(broker)
    ran = asyncio.Event()

    @broker.task(task_name="tick")
    async def tick(n: int) -> int:
        ran.set()
        return n

    async def scene() -> None:
        cron = await tick.kicker().schedule_by_cron(source, "0 3 * * *", 1)
        (known,) = await broker.queue.schedules.list()
        assert (known.name, known.cron, known.kind) == (cron.schedule_id, "0 3 * * *", "tick")
        await cron.unschedule()
        assert not await broker.queue.schedules.list()
        assert await source.get_schedules() == []

        later = datetime.now(UTC) + timedelta(hours=1)
        once = await tick.kicker().schedule_by_time(source, later, 2)
        assert len(await scheduled(broker.queue)) == 1
        await once.unschedule()
        await once.unschedule()
        assert await counted(broker.queue) == (0, 0)

        every = await tick.kicker().schedule_by_interval(source, 1, 3)
        async with listening(broker), asyncio.timeout(30):
            await ran.wait()
            task = every.schedule_id
            await until(lambda: broker.result_backend.is_result_ready(task))
        assert (await broker.result_backend.get_result(task)).return_value == 3

    played(broker, scene)


def test_a_result_that_cannot_be_kept_is_told(file: str) -> None:
    broker = made(file)

    @broker.task(task_name="odd")
    async def odd() -> object:
        return lambda: None

    async def scene() -> None:
        task = await odd.kiq()
        async with listening(broker):
            result = await task.wait_result(check_interval=0.02, timeout=30)
        assert result.is_err
        assert "cannot be kept" in str(result.error)

    played(broker, scene)


def test_results_end(url: str) -> None:
    backend: LanewayResultBackend[Any] = LanewayResultBackend(url, keep_results=0)

    async def scene() -> None:
        await backend.startup()
        await backend.startup()
        progress: TaskProgress[Any] = TaskProgress(state="begun", meta=None)
        await backend.set_progress("one", progress)
        assert await backend.get_progress("one") is None
        await backend._purge()
        rows = await backend._rows("get_progress", "one")
        assert rows == []
        await backend.shutdown()

    asyncio.run(scene())


def test_a_broker_that_cannot_reach_its_database_says_so(file: str) -> None:
    broker = LanewayBroker(file)  # nothing is installed there

    async def scene() -> None:
        with pytest.raises(Exception, match="laneway install"):
            await broker.kick(BrokerMessage(task_id="1", task_name="a", message=b"{}", labels={}))

    played(broker, scene)
