"""One worker process of the demo: ``python -m laneway.dev.demo.jobs NAME``."""

import asyncio
import logging
import os
import sys

from laneway import Constant, Queue, Worker

from .tenants import LEASE, POISON_ATTEMPTS, SCHEMA, URL

WORK = 0.03  # seconds a message


def make_worker(url: str, name: str) -> Worker:
    worker = Worker(Queue(url, schema=SCHEMA, worker=name, lease=LEASE), concurrency=10)

    @worker.handler("job")
    async def job() -> None:
        await asyncio.sleep(WORK)

    @worker.handler("poison", retry=Constant(every=0.2, attempts=POISON_ATTEMPTS))
    async def poison() -> None:
        raise ValueError("this message can never be done")

    return worker


if __name__ == "__main__":
    # The failures are intended, and the verdict reports them.
    logging.getLogger("laneway").setLevel(logging.CRITICAL)
    make_worker(os.environ[URL], sys.argv[1]).run()
