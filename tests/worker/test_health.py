"""Where health listens, and that it answers while the database does not."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from laneway import AsyncQueue, Queue, Worker
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import InvalidOption
from laneway.worker.telemetry.health import Health
from tests.client.worlds import run_async
from tests.conftest import SETTINGS
from tests.frozen import frozen
from tests.worker.test_telemetry import get
from tests.worker.test_worker import until

OWN_DEADLINE = 4.0  # seconds: two of its own, and what a busy machine may add


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_readiness_answers_in_time_while_the_database_is_frozen(driver: str) -> None:
    with EmbeddedPostgres(version=18, settings=SETTINGS) as server:

        @run_async
        async def check() -> None:
            url = server.create_database("frozen")
            if driver == "asyncpg":
                url = url.replace("postgresql://", "postgresql+asyncpg://")
            async with AsyncQueue(url) as queue:
                await queue.install()
                worker = Worker(queue, health_port=0)

                @worker.default_handler
                async def handle(payload: int) -> None: ...

                serving = asyncio.create_task(worker.serve())
                await until(lambda: worker.health is not None and worker.health.port > 0)
                assert worker.health is not None
                port = worker.health.port
                await _ready(port)
                with frozen(server):
                    for _ in range(2):
                        begun = time.monotonic()
                        both = await asyncio.gather(*(get(port, "/readyz") for _ in range(20)))
                        assert time.monotonic() - begun < OWN_DEADLINE
                        for code, text in both:
                            assert code == 503
                            assert "the database does not answer" in json.loads(text)["problems"][0]
                    assert (await get(port, "/livez"))[0] == 200
                await _ready(port)
                worker.stop()
                await asyncio.wait_for(serving, 40)

        check()


async def _ready(port: int) -> None:
    async with asyncio.timeout(20):
        while (await get(port, "/readyz"))[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def test_health_listens_where_the_user_says(queue: Queue) -> None:
    @run_async
    async def check() -> None:
        worker = Worker(queue, health_port=0, health_host="0.0.0.0")
        worker.default_handler(lambda payload: None)
        serving = asyncio.create_task(worker.serve())
        await until(lambda: worker.health is not None and worker.health.port > 0)
        assert worker.health is not None
        host = socket.gethostbyname(socket.gethostname())
        reader, writer = await asyncio.open_connection(host, worker.health.port)
        writer.write(b"HEAD /livez HTTP/1.1\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and not body
        writer.close()

        second = Worker(queue, health_port=worker.health.port)
        second.default_handler(lambda payload: None)
        with pytest.raises(InvalidOption, match="choose another"):
            await second.serve()
        worker.stop()
        await asyncio.wait_for(serving, 40)

    check()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db") as opened:
        opened.install()
        yield opened


@pytest.mark.parametrize("port", [-1, 65536, "8080", 80.0, True])
def test_a_bad_port_is_refused_at_once(queue: Queue, port: object) -> None:
    with pytest.raises(InvalidOption, match="health_port"):
        Worker(queue, health_port=port)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="health_port"):
        Worker(queue).override(health_port=port)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["", " ", "a\nb", None, 7])
def test_a_bad_host_is_refused_at_once(queue: Queue, host: object) -> None:
    with pytest.raises(InvalidOption, match="health_host"):
        Worker(queue, health_port=1, health_host=host)  # type: ignore[arg-type]


def test_a_host_without_a_port_is_a_mistake(queue: Queue) -> None:
    with pytest.raises(InvalidOption, match="health_port too"):
        Worker(queue, health_host="0.0.0.0")
    with pytest.raises(InvalidOption, match="health_port too"):
        Worker(queue).override(health_host="0.0.0.0")
    Worker(queue).override(health_host="0.0.0.0", health_port=8080)


def test_an_address_of_another_machine_is_an_error_with_advice(queue: Queue) -> None:
    worker = Worker(queue, health_port=0, health_host="203.0.113.7")
    worker.default_handler(lambda payload: None)
    with pytest.raises(InvalidOption, match=r"cannot listen on 203\.0\.113\.7"):
        worker.run(until_empty=True)


@run_async
async def test_a_scraper_that_does_not_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("laneway.worker.telemetry.health._REQUEST_TIMEOUT", 0.3)
    size = 50_000_000

    async def scrape() -> tuple[bytes, str]:
        return b"x" * size, "text/plain"

    health = Health(scrape)
    await health.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", health.port), timeout=60) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        await until(lambda: health._connections == 1)
        await until(lambda: health._connections == 0)
        found = 0
        with suppress(ConnectionResetError):
            while part := await asyncio.to_thread(one.recv, 1_000_000):
                found += len(part)
        assert found < size
    await health.close()
