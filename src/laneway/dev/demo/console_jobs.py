"""A worker of the dashboard's demo: ``python -m laneway.dev.demo.console_jobs NAME``."""

import asyncio
import logging
import os
import random
import sys

from laneway import Constant, Fail, Queue, Worker

from .tenants import SCHEMA, URL


async def _short() -> None:
    await asyncio.sleep(random.uniform(0.1, 0.3))


def make_worker(url: str, name: str) -> Worker:
    """Handlers as an application has them: quick, slow, and some that fail."""
    worker = Worker(Queue(url, schema=SCHEMA, worker=name), concurrency=5)

    @worker.handler("email", retry=Constant(every=2, attempts=3))
    async def email() -> None:
        await asyncio.sleep(random.uniform(0.05, 0.4))
        if random.random() < 0.03:
            raise ConnectionError("the mail server closed the connection")

    @worker.handler("invoice")
    async def invoice() -> None:
        await asyncio.sleep(random.uniform(0.1, 0.6))

    @worker.handler("webhook", retry=Constant(every=3, attempts=2))
    async def webhook() -> None:
        await asyncio.sleep(0.05)
        if random.random() < 0.25:
            raise TimeoutError("no answer from https://hooks.example after 5 s")

    @worker.handler("import")
    async def bulk_import(payload: dict[str, int]) -> None:
        await asyncio.sleep(0.1)
        if payload["row"] % 9 == 0:
            raise Fail(f"row {payload['row']} has no customer")

    @worker.handler("fetch-page")
    async def fetch_page(payload: dict[str, int]) -> None:
        await asyncio.sleep(random.uniform(0.1, 0.4))
        if payload["page"] == 4:
            raise LookupError("page 4: https://shop.example/export?page=4 answers 404")

    for kind in ("list-pages", "merge", "index", "tell-owner", "statement", "bundle", "send"):
        worker.handler(kind)(_short)

    @worker.handler("report")
    async def report() -> None:
        await asyncio.sleep(1)

    return worker


if __name__ == "__main__":
    # The failures are intended; the dashboard shows them.
    logging.getLogger("laneway").setLevel(logging.CRITICAL)
    make_worker(os.environ[URL], sys.argv[1]).run()
