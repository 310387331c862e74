"""Health, metrics, logs and hooks."""

import asyncio
import json
import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from laneway import AsyncMessage, AsyncQueue, Constant, Defer, Worker
from laneway.errors import SchemaTooOld
from laneway.worker.telemetry.logs import JsonFormatter
from laneway.worker.telemetry.metrics import Metrics
from tests.client.worlds import run_async
from tests.next_version import add_migration
from tests.place import Place
from tests.worker.test_outages import Proxy
from tests.worker.test_worker import client, until


async def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return int(text.split()[1]), text.partition("\r\n\r\n")[2]


@run_async
async def test_health_tells_a_dead_database_from_a_dead_worker(place: Place) -> None:
    async with client(place):
        pass
    proxy = Proxy(place.url)
    async with AsyncQueue(await proxy.start(), schema=place.schema) as queue:
        worker = Worker(queue, health_port=0, observers=[Metrics(CollectorRegistry())])

        @worker.default_handler
        async def handle(payload: int) -> None: ...

        serving = asyncio.create_task(worker.serve())
        await until(lambda: worker.health is not None and worker.health.port > 0)
        assert worker.health is not None
        port = worker.health.port

        async with asyncio.timeout(20):
            while (await get(port, "/readyz"))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (await get(port, "/livez"))[0] == 200
        assert (await get(port, "/nothing"))[0] == 404
        assert (await get(port, "/livez", "POST"))[0] == 405
        code, text = await get(port, "/metrics")
        assert code == 200 and 'laneway_worker_claims_total{status="empty"}' in text
        await proxy.close()
        code, text = await get(port, "/readyz")
        assert code == 503
        assert "the database does not answer" in json.loads(text)["problems"][0]
        assert (await get(port, "/livez"))[0] == 200
        await proxy.start()
        worker.stop()
        await asyncio.wait_for(serving, 40)
        await proxy.close()


@run_async
async def test_a_schema_that_is_too_old_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client(place) as queue:
        add_migration(monkeypatch, "postgresql")
        worker = Worker(queue)
        worker.default_handler(lambda payload: None)
        with pytest.raises(SchemaTooOld, match="upgrade"):
            await worker.serve()


@run_async
async def test_metrics_count_what_became_of_messages(place: Place) -> None:
    async with client(place) as queue:
        registry = CollectorRegistry()
        worker = Worker(queue, observers=[Metrics(registry)], unhandled_timeout=timedelta(0))

        @worker.handler("good")
        async def good(payload: int) -> None: ...

        @worker.handler("bad", retry=Constant(every=0, attempts=2))
        async def bad(payload: int) -> None:
            raise ValueError

        @worker.handler("step")
        async def step(payload: int, message: AsyncMessage) -> object:
            return Defer() if message.attempt == 1 else None

        for kind in ("good", "good", "bad", "step", "never heard of", "nor of this"):
            await queue.publish(1, kind=kind)
        await worker.serve(until_empty=True)

        def count(kind: str, outcome: str) -> float | None:
            labels = {"queue": "default", "kind": kind, "outcome": outcome}
            return registry.get_sample_value("laneway_worker_messages_total", labels)

        assert count("good", "completed") == 2
        assert (count("bad", "retried"), count("bad", "failed")) == (1, 1)
        assert (count("step", "deferred"), count("step", "completed")) == (1, 1)
        given_back = count("(no handler)", "given_back")
        assert given_back is not None and given_back >= 2
        claimed = registry.get_sample_value("laneway_worker_claimed_messages_total")
        assert claimed == 6 + given_back
        labels = {"queue": "default", "kind": "good"}
        assert registry.get_sample_value("laneway_worker_handler_seconds_count", labels) == 2


@run_async
async def test_metrics_say_what_the_database_answered(place: Place) -> None:
    """Not what the worker meant to write: a handler may have settled its message itself, or lost
    it."""
    async with client(place) as queue:
        registry = CollectorRegistry()
        metrics = [Metrics(registry), Metrics(registry)]  # of two workers in one process
        for observer in metrics:
            worker = Worker(queue, observers=[observer], max_messages=4)

            @worker.handler
            async def transaction(payload: int, tx: psycopg.AsyncConnection) -> None: ...

            @worker.handler
            async def itself(payload: int, message: AsyncMessage) -> None:
                await message.complete()

            @worker.handler(retry=Constant(every=0))
            async def last(payload: int) -> None:
                raise ValueError

            @worker.handler
            async def taken(payload: int, message: AsyncMessage) -> None:
                await queue.give_back([message], delay=3600)

            @worker.handler
            async def taken_in_transaction(
                payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage
            ) -> None:
                await queue.give_back([message], delay=3600)

            lost = "taken" if observer is metrics[0] else "taken_in_transaction"
            for kind in ("transaction", "itself", lost):
                await queue.publish(1, kind=kind)
            await queue.publish(1, kind="last", max_attempts=1)
            await worker.serve()

        def count(kind: str, outcome: str) -> float | None:
            labels = {"queue": "default", "kind": kind, "outcome": outcome}
            return registry.get_sample_value("laneway_worker_messages_total", labels)

        def lost_leases(kind: str) -> float | None:
            labels = {"queue": "default", "kind": kind}
            return registry.get_sample_value("laneway_worker_leases_lost_total", labels)

        assert count("transaction", "completed") == count("itself", "completed") == 2
        assert count("last", "failed") == 2 and count("last", "retried") is None
        for kind in ("taken", "taken_in_transaction"):
            assert (count(kind, "lost"), lost_leases(kind)) == (1, 1)
            assert count(kind, "completed") is count(kind, "left") is None


@run_async
async def test_hooks(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    async with client(place) as queue:
        worker = Worker(queue)
        told: list[Any] = []

        @worker.on_start
        async def start() -> None:
            told.append("start")

        @worker.on_stop
        def stop() -> None:
            told.append("stop")

        @worker.on_error
        def error(message: Any, problem: Exception) -> None:
            told.append((message.kind, str(problem)))
            raise RuntimeError("the reporter is broken")

        @worker.handler("bad", ack="reject")
        async def bad(payload: int) -> None:
            raise ValueError("no")

        await queue.publish(1, kind="bad")
        await worker.serve(until_empty=True)
        assert told == ["start", ("bad", "no"), "stop"]
        assert "a hook for error failed" in caplog.text
        assert len(await queue.dead_letters.list()) == 1

        @worker.on_start
        def refuse() -> None:
            raise RuntimeError("not today")

        with pytest.raises(RuntimeError, match="not today"):
            await worker.serve()


def test_json_logs_have_the_fields_of_the_message() -> None:
    record = logging.LogRecord("laneway", logging.WARNING, "f", 1, "%s failed", ("x",), None)
    record.__dict__.update(message_id=7, channel="tenant", attempt=2)
    line = json.loads(JsonFormatter().format(record))
    assert line["text"] == "x failed"
    assert (line["message_id"], line["channel"], line["attempt"]) == (7, "tenant", 2)
    assert line["level"] == "WARNING" and line["time"].endswith("+00:00")
