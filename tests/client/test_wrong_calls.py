"""Calls, options, names, URLs and connections that a new user mistypes: what Laneway answers.

One table for Python; tests/cli/test_wrong_commands.py has that of the shell.
"""

# ruff: noqa: E501
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc, typeddict-unknown-key"

import asyncio
import copy
import pickle
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from laneway import (
    AsyncQueue,
    Constant,
    Defer,
    Exponential,
    Fail,
    Linear,
    Policy,
    Queue,
    Tasks,
    Throttled,
    Worker,
)
from laneway.errors import InvalidCall, InvalidOption, LanewayError
from laneway.limits import Adapt, Breaker
from tests.place import Place

URL = "sqlite:///:memory:"
PASSWORD = "hunter2secret"


class Things(NamedTuple):
    """What the lines of the table call."""

    queue: Any
    aqueue: Any
    worker: Any
    task: Any
    message: Any


@pytest.fixture(scope="module")
def things() -> Iterator[Things]:
    with Queue(URL) as queue:
        queue.install()
        queue.publish(1)
        (message,) = queue.claim()
        worker = Worker(queue)

        @worker.task
        def send(order: int, copy: bool = False) -> None: ...

        yield Things(queue, AsyncQueue(URL), worker, send, message)


def ran(result: Any) -> object:
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


# fmt: off
OPTIONS: list[tuple[Callable[[Things], object], str]] = [
    (lambda t: Queue(URL, poolsize=5), "Queue() has no option poolsize=: write pool_size="),
    (lambda t: Queue(URL, queue="emails"), "Queue() has no option queue=: write name="),
    (lambda t: Queue(URL, "emails"), "Queue() takes url by position, and the others by name: name=, sch"),
    (lambda t: Queue(), "Queue() needs url"),
    (lambda t: Queue(dsn=URL), "Queue() has no option dsn=: write url="),
    (lambda t: AsyncQueue(URL, pool=5), "AsyncQueue() has no option pool=: write pool_size="),
    (lambda t: Worker(t.queue, concurency=5), "Worker() has no option concurency=: write concurrency="),
    (lambda t: Worker(t.queue, threads=5), "Worker() has no option threads=: write concurrency="),
    (lambda t: Worker(t.queue, queue="a"), "Worker() got queue twice, by position and by name: did you mean queues=?"),
    (lambda t: Worker(), "Worker() needs queue"),
    (lambda t: t.worker.task(retries=3), "a task has no option retries=: write retry="),
    (lambda t: t.worker.task(name="x"), "a task has no option name=: write kind="),
    (lambda t: t.worker.task(timout=3), "a task has no option timout=: write timeout="),
    (lambda t: t.worker.task(countdown=3), "a task has no option countdown=: write delay="),
    (lambda t: t.worker.batch_task(max_size=3), "a task has no option max_size=: write size="),
    (lambda t: t.worker.handler(retries=3), "handler() has no option retries=: write retry="),
    (lambda t: t.worker.run(until_emty=True), "run() has no option until_emty=: write until_empty="),
    (lambda t: t.worker.override(queue="x"), "override() has no option queue=: write queues="),
    (lambda t: Tasks(chanel="x"), "a task has no option chanel=: write channel="),
    (lambda t: t.queue.publish({}, chanel="x"), "publish() has no option chanel=: write channel="),
    (lambda t: t.queue.publish({}, tenant="x"), "publish() has no option tenant=: write channel="),
    (lambda t: t.queue.publish({}, eta=5), "publish() has no option eta=: write at="),
    (lambda t: t.queue.publish({}, "emails"), "publish() takes payload by position, and the others by name: chan"),
    (lambda t: t.queue.publish(), "publish() needs payload"),
    (lambda t: t.aqueue.publish({}, chanel="x"), "publish() has no option chanel=: write channel="),
    (lambda t: t.queue.publish_many([1], chanel="x"), "publish_many() has no option chanel=: write channel="),
    (lambda t: t.queue.publish_many(t.task), "publish_many takes calls of send: [send.message(…)]"),
    (lambda t: t.queue.claim(max=5), "claim() has no option max=: write limit="),
    (lambda t: Exponential(initail=1), "Exponential() has no option initail=: write initial="),
    (lambda t: Exponential(max_retries=3), "Exponential() has no option max_retries=: write attempts="),
    (lambda t: Exponential(5), "Exponential() takes its options by name: attempts=, within="),
    (lambda t: Constant(delay=5), "Constant() has no option delay=: write every="),
    (lambda t: Linear(stepp=5), "Linear() has no option stepp=: write step="),
    (lambda t: t.queue.schedule("x", corn="* * * * *"), "schedule() has no option corn=: write cron="),
    (lambda t: t.queue.schedule("x", tz="UTC"), "schedule() has no option tz=: write zone="),
    (lambda t: t.queue.schedule("x", cron="* * * * *", zone="Europe/Zuerich"), "did you mean 'Europe/Zurich'?"),
    (lambda t: t.queue.schedule("x", every="5m"), "every is '5m': give a number of seconds or a timedelta, such as"),
    (lambda t: t.queue.schedules.pause(nam="x"), "pause() has no option nam=: write name="),
    (lambda t: t.queue.flow("x", tenant="a"), "flow() has no option tenant=: write channel="),
    (lambda t: flow_of(t.queue).add(1, chanel="a"), "flow.add() has no option chanel=: write channel="),
    (lambda t: t.queue.channel("a").limit(concurency=5), "limit() has no option concurency=: write concurrency="),
    (lambda t: t.queue.channel("a").limit(rps=5), "limit() has no option rps=: write rate="),
    (lambda t: t.queue.channel("a").limit(5), "limit() takes its options by name: concurrency=, rate="),
    (lambda t: t.queue.limits["x"].set(conc=5), "set() has no option conc=: write concurrency="),
    (lambda t: t.queue.limits["x"].set(adapt=5), "adapt must be an Adapt(min=…, max=…) or None, not 5"),
    (lambda t: Adapt(minimum=1), "Adapt() has no option minimum=: write min="),
    (lambda t: Adapt("1", 2), "Adapt takes whole numbers, not '1'"),
    (lambda t: Breaker(failure=0.5), "Breaker() has no option failure=: write failures="),
    (lambda t: Breaker(failures=50), "failures is 50: it must be a share above 0 and at most 1"),
    (lambda t: Policy(concurency=5), "Policy() has no option concurency=: write concurrency="),
    (lambda t: t.message.defer(retry_in=5), "defer() has no option retry_in=: write delay="),
    (lambda t: t.message.extend(lease=5), "extend() has no option lease=: write length="),
    (lambda t: t.message.complete(5), "complete() takes its options by name: result=, connection="),
    (lambda t: Fail("x", retry=5), "Fail() has no option retry=: it takes reason, error"),
    (lambda t: Defer(delya=5), "Defer() has no option delya=: write delay="),
    (lambda t: Throttled(seconds=5), "Throttled() has no option seconds=: write retry_after="),
    (lambda t: t.queue.dead_letters.list(queu="a"), "list() has no option queu=: write queue="),
    (lambda t: t.queue.topic("a").publish(1, chanel="b"), "publish() has no option chanel=: write channel="),
    (lambda t: t.queue.wait(1, timout=5), "wait() has no option timout=: write timeout="),
    (lambda t: t.queue.stats(queue="a"), "stats() has no option queue=: it takes no options"),
    (lambda t: t.task.publish(ordr=1), "it has no parameter 'ordr': did you mean 'order'?"),
    (lambda t: t.task.publish(1, delay=5), "it has no parameter 'delay': options go into .using(delay=…)"),
    (lambda t: t.task.publish("one"), "'one' is not an int"),
    (lambda t: t.task.using(delya=5), "a task has no option delya=: write delay="),
]
NAMES: list[tuple[Callable[[Things], object], str]] = [
    (lambda t: t.queue.enqueue({}), "'Queue' object has no attribute 'enqueue': did you mean 'publish'?"),
    (lambda t: t.queue.publsh({}), "'Queue' object has no attribute 'publsh': did you mean 'publish'?"),
    (lambda t: t.aqueue.receive(), "'AsyncQueue' object has no attribute 'receive': did you mean 'claim'?"),
    (lambda t: t.message.ack(), "'Message' object has no attribute 'ack': did you mean 'complete'?"),
    (lambda t: t.message.body, "'Message' object has no attribute 'body': did you mean 'payload'?"),
    (lambda t: t.task.delay(1), "'Task' object has no attribute 'delay': did you mean 'publish'?"),
    (lambda t: t.worker.start(), "'Worker' object has no attribute 'start': did you mean 'run'?"),
    (lambda t: t.queue.dead_letters.retry(), "no attribute 'retry': did you mean 'redrive'?"),
    (lambda t: t.queue.zzz, "'Queue' object has no attribute 'zzz'"),
]
URLS: list[tuple[object, str]] = [
    (None, "None is not a database URL: is the environment variable that it comes from set?"),
    ("", "it is empty; is DATABASE_URL set?"),
    (PurePath("shop.db"), "for a file write 'sqlite:///shop.db'"),
    ("shop.db", "for a file write sqlite:///shop.db"),
    ("postgresq://localhost/shop", "did you mean postgresql://?"),
    ("pg://localhost/shop", "did you mean postgresql://?"),
    ("postgresql+asynpcg://localhost/shop", "did you mean postgresql+asyncpg://?"),
    ("postgresql+nothing://localhost/shop", "did you mean postgresql://?"),
    ("jdbc:postgresql://localhost/shop", "leave out jdbc:"),
    ("postgresql:localhost/shop", "write postgresql:// before the host"),
    ("postgresql//localhost/shop", "write postgresql:// before the host"),
    ("'postgresql://localhost/shop'", "remove the quotes, spaces and line breaks around it"),
    ("postgresql://localhost/shop\n", "remove the quotes, spaces and line breaks around it"),
    (f"DATABASE_URL=postgresql://app:{PASSWORD}@db/shop", "leave out DATABASE_URL="),
    (f"host=db port=5433 dbname=shop user=app password={PASSWORD} sslmode=require",
     "write it as postgresql://app:***@db:5433/shop?sslmode=require"),
    ("dbname=shop host=/run/postgresql", "write it as postgresql:///shop?host=/run/postgresql"),
    ("mssql://localhost/shop", "that Laneway knows: use one like postgresql://"),
    ("redis://localhost", "that Laneway knows: use one like postgresql://"),
    ("postgresql://localhost/shop?ssl=true", "unknown option 'ssl' in .*: write sslmode=require"),
    ("postgresql://localhost/shop?sslmod=require", "unknown option 'sslmod' in .*: write sslmode"),
    (f"postgresql://app:{PASSWORD}@db:x/shop", "the host or port of .* cannot be read"),
]
# fmt: on


def flow_of(queue: Queue) -> Any:
    return queue.flow("x").__enter__()


@pytest.mark.parametrize(("call", "says"), [*OPTIONS, *NAMES])
def test_a_wrong_call_names_the_right_one(
    things: Things, call: Callable[[Things], object], says: str
) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as raised:
        ran(call(things))
    text = str(raised.value)
    assert says in text and "\n" not in text and "__init__" not in text


@pytest.mark.parametrize(("url", "says"), URLS)
def test_a_wrong_url_says_what_to_write(url: Any, says: str) -> None:
    pattern = re.escape(says).replace(r"\.\*", ".*")
    with pytest.raises(InvalidOption, match=pattern) as e:
        Queue(url)
    assert PASSWORD not in str(e.value)


def test_an_error_from_inside_of_a_call_stays_what_it_is(things: Things) -> None:
    with pytest.raises(TypeError, match=r"^from inside$"):
        things.queue.publish_many(OddIterable())


class OddIterable:
    def __iter__(self) -> Iterator[object]:
        raise TypeError("from inside")


def test_signatures_and_kinds_of_functions_stay() -> None:
    import inspect

    assert inspect.iscoroutinefunction(AsyncQueue.publish)
    assert not inspect.iscoroutinefunction(Queue.publish)
    assert "channel" in inspect.signature(Queue.publish).parameters
    assert "pool_size" in inspect.signature(Queue).parameters
    assert not hasattr(Queue(URL), "enqueue")


def test_a_url_where_a_queue_belongs() -> None:
    wrong: Any = f"postgresql://app:{PASSWORD}@db/shop"
    with pytest.raises(InvalidOption, match=r"write Worker\(Queue\(url\)\)") as raised:
        Worker(wrong)
    assert PASSWORD not in str(raised.value)


def test_what_cannot_be_sent_to_another_process(things: Things) -> None:
    for one in (things.queue, things.aqueue, things.message):
        with pytest.raises(TypeError, match="send its URL, and open one there"):
            pickle.dumps(one)
    with pytest.raises(TypeError, match="cannot be copied or sent to another process"):
        copy.deepcopy(things.queue.channel("a"))


def test_a_worker_within_an_event_loop(things: Things) -> None:
    async def wrong(verb: Callable[[], object]) -> None:
        verb()

    with pytest.raises(InvalidCall, match=r"cannot run inside an event loop: write await worker"):
        asyncio.run(wrong(things.worker.run))
    with pytest.raises(InvalidCall, match=r"write await asyncio.to_thread\(worker.check\)"):
        asyncio.run(wrong(things.worker.check))


def test_a_module_where_its_tasks_belong(things: Things) -> None:
    with pytest.raises(
        InvalidOption, match=r"include\(\) takes Tasks or a Worker, not 'shop.jobs'"
    ):
        things.worker.include("shop.jobs")


def pool_of_psycopg() -> object:
    from psycopg_pool import ConnectionPool

    return ConnectionPool("", open=False)


def async_pool_of_psycopg() -> object:
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool("", open=False)


def pool_of_asyncpg() -> object:
    """It has an ``execute``, which takes any connection, outside of every transaction."""
    import asyncpg

    return asyncpg.create_pool("postgresql://localhost/none")


def engine_of_sqlalchemy() -> object:
    from sqlalchemy import create_engine

    return create_engine("sqlite://")


def async_engine_of_sqlalchemy() -> object:
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine("sqlite+aiosqlite://")


def sessionmaker_of_sqlalchemy() -> object:
    from sqlalchemy.orm import sessionmaker

    return sessionmaker()


def cursor_of_sqlite() -> object:
    return sqlite3.connect(":memory:").cursor()


CONNECTIONS: list[tuple[Callable[[], object], str]] = [
    (pool_of_psycopg, "pass one that it gives: with pool.connection() as connection"),
    (async_pool_of_psycopg, "pass one that it gives: async with pool.connection() as connection"),
    (pool_of_asyncpg, "pass one that it gives: async with pool.acquire() as connection"),
    (engine_of_sqlalchemy, "pass one that it gives: with engine.begin() as connection"),
    (async_engine_of_sqlalchemy, "pass one that it gives: async with engine.begin() as connection"),
    (sessionmaker_of_sqlalchemy, "pass one that it gives: with Session.begin() as session"),
    (cursor_of_sqlite, "pass the connection that the cursor belongs to"),
    (lambda: URL, "a str is not a connection: pass an open connection, not text"),
    (lambda: Queue(URL), "pass your own, or leave out connection= to use the queue's"),
    (lambda: AsyncQueue(URL), "pass your own, or leave out connection= to use the queue's"),
    (lambda: sqlite3, "is not a connection that Laneway knows: pass one of psycopg, asyncpg"),
]


@pytest.mark.parametrize(("make", "says"), CONNECTIONS)
def test_what_is_not_a_connection(things: Things, make: Callable[[], object], says: str) -> None:
    for queue in (things.queue, things.aqueue):

        async def publish(queue: Any = queue) -> None:
            wrong = make()
            found = queue.publish(1, connection=wrong)
            if asyncio.iscoroutine(found):
                await found

        with pytest.raises(TypeError) as raised:
            asyncio.run(publish())
        assert says in str(raised.value)
    assert [one.waiting for one in things.queue.stats()] == [0]


def test_a_connection_of_the_other_world(things: Things, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    with pytest.raises(TypeError, match="use Queue, or an async connection"):
        ran(things.aqueue.publish(1, connection=connection))
    connection.close()


@pytest.mark.parametrize("url", ["url", "asyncpg_url"])
def test_a_server_that_does_not_let_us_in(place: Place, url: str) -> None:
    def said(user: str, database: str) -> str:
        parts = urlsplit(getattr(place, url))
        server = parts.netloc.rpartition("@")[2]
        wrong = parts._replace(netloc=f"{user}:{PASSWORD}@{server}", path=f"/{database}").geturl()
        with pytest.raises(LanewayError) as raised:
            asyncio.run(publish_once(wrong))
        assert PASSWORD not in str(raised.value)
        return str(raised.value)

    right = urlsplit(place.url)
    assert said("nobody", right.path[1:]).endswith("; check the user and the password in the URL")
    user = right.username or ""
    assert said(user, "none").endswith("; create the database, or correct its name in the URL")


async def publish_once(url: str) -> None:
    async with AsyncQueue(url) as queue:
        await queue.publish(1)
