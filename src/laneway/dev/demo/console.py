"""What laneway dashboard --demo shows: tenants that publish, workers, things that fail."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

from laneway import LanewayError, NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres

from .tenants import SCHEMA, URL

WORKERS = ("worker-1", "worker-2")
_EVERY = 0.5  # seconds
_STOP_TIMEOUT = 15.0


@contextmanager
def demo_queue(workers: int = len(WORKERS)) -> Iterator[Queue]:
    """A queue on a temporary server, in use until the block ends."""
    with EmbeddedPostgres() as server, queue_in_use(_database(server), workers) as queue:
        yield queue


def _database(server: EmbeddedPostgres) -> str:
    return server.create_database("demo")


@contextmanager
def queue_in_use(url: str, workers: int = len(WORKERS)) -> Iterator[Queue]:
    """A queue in this database, in use until the block ends."""
    with Queue(url, schema=SCHEMA) as queue:
        queue.install()
        prepare(queue)
        with _processes(url, WORKERS[:workers]), _tenants(queue):
            yield queue


def prepare(queue: Queue) -> None:
    """Limits, a backlog of each sort, a queue that nobody serves, a schedule, a topic, flows."""
    queue.channel("acme").limit(weight=2)
    queue.channel("globex").limit(concurrency=2)
    queue.channel("initech").limit(rate=2, burst=4)
    queue.channel("umbrella").pause()
    queue.publish_many(
        [NewMessage({"to": n}, channel="noisy-import", kind="email") for n in range(4000)]
    )
    for tenant in ("globex", "initech", "umbrella"):
        queue.publish_many(
            [NewMessage({"invoice": n}, channel=tenant, kind="invoice") for n in range(150)]
        )
    queue.publish_many(
        [NewMessage({"row": n}, channel="globex", kind="import", max_attempts=1) for n in range(90)]
    )
    queue.publish_many(
        [NewMessage({"n": n}, channel="acme", kind="thumbnail", queue="images") for n in range(40)]
    )
    queue.publish({"quarter": 3}, channel="acme", kind="report", delay=timedelta(hours=6))
    queue.schedule("reports", {"daily": True}, every=timedelta(minutes=1), kind="report")
    queue.topic("orders").subscribe("default", kind="email")
    queue.topic("orders").subscribe("warehouse")
    publish_import(queue, "nightly-import:stark", "stark", range(9))
    with queue.flow("statements:2026-10", channel="acme") as flow:
        parts = [flow.add({"statement": n}, kind="statement") for n in range(2500)]
        flow.add({}, kind="send", after=flow.add({}, kind="bundle", after=parts))


def publish_import(queue: Queue, name: str, channel: str, pages: Iterable[int]) -> None:
    """A flow: list, fetch, merge, tell. Page 4 does not exist, and holds what comes after it."""
    with queue.flow(name, channel=channel) as flow:
        listed = flow.add({}, kind="list-pages")
        fetched = [
            flow.add({"page": n}, kind="fetch-page", after=listed, max_attempts=1) for n in pages
        ]
        merged = flow.add({}, kind="merge", after=fetched)
        flow.add({}, kind="index", after=merged)
        flow.add({}, kind="tell-owner", after=merged, when="ended")


@contextmanager
def _processes(url: str, names: tuple[str, ...]) -> Iterator[None]:
    command = [sys.executable, "-m", "laneway.dev.demo.console_jobs"]
    # Not an argument: other users can read those, and the URL may hold a password.
    environment = {**os.environ, URL: url}
    running = [subprocess.Popen([*command, name], env=environment) for name in names]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _tenants(queue: Queue) -> Iterator[None]:
    """Publishes as long as the block lasts."""
    stop = Event()
    thread = Thread(target=_publish, args=(queue, stop), name="demo-tenants", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5)


def _publish(queue: Queue, stop: Event) -> None:
    number = 0
    while not stop.wait(_EVERY):
        number += 1
        messages = [
            NewMessage({"to": number}, channel="noisy-import", kind="email") for _ in range(8)
        ]
        messages += [
            NewMessage({"to": number}, channel=f"tenant-{random.randrange(30):02}", kind="email")
            for _ in range(4)
        ]
        messages.append(NewMessage({"url": number}, channel="acme", kind="webhook", max_attempts=2))
        messages.append(NewMessage({"invoice": number}, channel="initech", kind="invoice"))
        try:
            queue.publish_many(messages)
            if number % 20 == 0:
                publish_import(queue, f"import:{number}", "acme", (1, 2, 3))
        except LanewayError:
            continue  # the server is going away, or a channel is full: the demo goes on
