"""Web and worker processes of a shop are killed at random: every committed order has its receipt,
one, and nothing is left over. ``LANEWAY_SHOP_SECONDS=60`` goes on for that long."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

import psycopg
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LANEWAY_SHOP_SECONDS", "0"))
KILLS = 6
PATIENCE = 120
LOG = subprocess.DEVNULL

WORKERS = {
    "fastapi": ["laneway.cli", "worker", "tests.shop.fastapi_shop:worker"],
    "taskiq": ["taskiq", "worker", "tests.shop.taskiq_shop:broker", "--workers", "1"],
    "django": ["tests.shop.django_shop", "laneway_worker"],
    "flask": ["laneway.cli", "worker", "tests.shop.flask_shop:worker"],
}

STRAY = "select count(*) from shop_receipt where order_id not in (select id from shop_order)"
pytestmark = pytest.mark.timeout(600)


class Shop:
    """One web process and two workers, each started again after it was killed."""

    def __init__(self, name: str, url: str) -> None:
        self._url = url
        self.port = _free_port()
        app = f"tests.shop.{name}_shop:app"
        web = ["flask", "--app", app, "run"] if name == "flask" else ["uvicorn", app]
        web += ["--port", str(self.port)]
        self._commands = [web, WORKERS[name], WORKERS[name]]
        self._running = [self._start(command) for command in self._commands]

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, "DATABASE_URL": self._url},
            cwd=ROOT,
            stdout=LOG,
            stderr=LOG,
            start_new_session=True,
        )

    def kill(self, number: int) -> None:
        """The whole group: also what extends the leases of a worker."""
        process = self._running[number]
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def replace(self, number: int) -> None:
        self.kill(number)
        self._running[number] = self._start(self._commands[number])

    def close(self) -> None:
        for number in range(len(self._running)):
            self.kill(number)


@contextmanager
def customers(port: int) -> Iterator[None]:
    """Who order all the time, and never learn what became of an order whose answer was lost."""
    over = threading.Event()
    numbers = count(1)

    def order() -> None:
        while not over.is_set():
            address = f"http://127.0.0.1:{port}/orders/{next(numbers)}"
            request = urllib.request.Request(address, method="POST")
            with suppress(OSError), urllib.request.urlopen(request, timeout=10):
                continue
            over.wait(0.05)

    threads = [threading.Thread(target=order) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.repeats("starts dozens of processes")
@pytest.mark.parametrize("name", WORKERS)
def test_every_order_has_one_receipt(name: str, server: EmbeddedPostgres) -> None:
    pytest.importorskip(name)
    url = server.create_database(f"shop_{name}_{time.monotonic_ns()}")
    with Queue(url) as queue, psycopg.connect(url, autocommit=True) as connection:
        queue.install()
        connection.execute("create table shop_order (id bigint primary key)")
        connection.execute("create table shop_receipt (order_id bigint primary key)")
        shop = Shop(name, url)
        try:
            with customers(shop.port):
                kill_at_random(shop, connection)
            _wait_for(lambda: _open(connection) == 0)
            _wait_for(lambda: not queue.messages())
        finally:
            shop.close()
        assert not queue.messages(state="dead")
        orders, receipts = _numbers(connection)
        assert orders == receipts > KILLS
        assert _one(connection, STRAY) == 0


def kill_at_random(shop: Shop, connection: "psycopg.Connection[tuple[int, ...]]") -> None:
    """Each time after something was ordered and done since the last kill: a process that only
    ever starts proves nothing."""
    until, kills = time.monotonic() + SECONDS, 0
    while kills < KILLS or time.monotonic() < until:
        orders, receipts = _numbers(connection)
        _wait_for(partial(_more, connection, orders, receipts))
        time.sleep(random.uniform(0, 0.3))
        shop.replace(random.choice((0, 1, 2)))
        kills += 1


def _more(connection: "psycopg.Connection[tuple[int, ...]]", orders: int, receipts: int) -> bool:
    now_orders, now_receipts = _numbers(connection)
    return now_orders > orders and now_receipts > receipts


def _numbers(connection: "psycopg.Connection[tuple[int, ...]]") -> tuple[int, int]:
    # Receipts first: an order that comes between the two has none yet.
    receipts = _one(connection, "select count(*) from shop_receipt")
    return _one(connection, "select count(*) from shop_order"), receipts


def _open(connection: "psycopg.Connection[tuple[int, ...]]") -> int:
    return _one(
        connection,
        "select count(*) from shop_order where id not in (select order_id from shop_receipt)",
    )


def _one(connection: "psycopg.Connection[tuple[int, ...]]", sql: str) -> int:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]


def _wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "nothing happens any more"
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
