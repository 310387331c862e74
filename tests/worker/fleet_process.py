"""A worker of several databases in a process of its own: ``fleet_process LEDGER URL URL``.

Appends to the ledger what begins and what ends, one line each: what, database, payload.
"""

import asyncio
import os
import sys

from laneway import AsyncMessage, AsyncQueue, Worker


def main(path: str, *urls: str) -> None:
    ledger = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    worker = Worker([AsyncQueue(url) for url in urls], concurrency=4)

    @worker.default_handler
    async def handle(payload: str, message: AsyncMessage) -> None:
        os.write(ledger, f"start {payload}\n".encode())
        await asyncio.sleep(0.5)
        os.write(ledger, f"end {payload}\n".encode())

    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
