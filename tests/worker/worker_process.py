"""A worker in a process of its own, for tests that stop and kill it.

``python -m tests.worker.worker_process '{"url": …, "schema": …, "ledger": …, "mode": …}'`` appends
what happens to the ledger, one line each: what, message id, fence, attempt, time.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from laneway import AsyncMessage, AsyncQueue, Message, Worker
from tests.worker import in_process


class Ledger:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, what: str, message: Any) -> None:
        line = f"{what} {message.id} {message.fence} {message.attempt} {time.monotonic()}\n"
        os.write(self._file, line.encode())


def hold_the_interpreter(seconds: float) -> None:
    """One call into C that lets no other thread run."""
    before = time.perf_counter()
    sum(range(3_000_000))
    each = (time.perf_counter() - before) / 3_000_000
    sum(range(int(seconds / each)))


def quick(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int) -> None: ...


def slow(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int, message: AsyncMessage) -> None:
        ledger.note("start", message)
        try:
            await asyncio.sleep(settings["seconds"])
        except asyncio.CancelledError:
            ledger.note("cancelled", message)
            raise
        ledger.note("end", message)


def ignores_cancellation(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int, message: AsyncMessage) -> None:
        ledger.note("start", message)
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)


def blocking(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    def handle(payload: int, message: Message) -> None:
        ledger.note("start", message)
        time.sleep(settings["seconds"])
        ledger.note("lost" if message.lost else "end", message)


def hogging(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int, message: AsyncMessage) -> None:
        ledger.note("start", message)
        if payload == 0:
            await asyncio.sleep(0.2)  # the others start, then nothing moves any more
            hold_the_interpreter(settings["seconds"])
        else:
            await asyncio.sleep(0.3)
        ledger.note("end", message)


def in_transaction(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int, tx: psycopg.AsyncConnection, message: AsyncMessage) -> None:
        await tx.execute("insert into effect values (%s)", [payload])
        ledger.note("effect", message)
        await asyncio.sleep(settings["seconds"])


def once(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    @worker.default_handler
    async def handle(payload: int, message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(settings["url"]) as mine:
            if await message.once(mine, f"effect:{payload}"):
                await mine.execute("insert into effect values (%s)", [payload])
        ledger.note("effect", message)
        await asyncio.sleep(settings["seconds"])


def in_own_process(worker: Worker, ledger: Ledger, settings: dict[str, Any]) -> None:
    """In the one process that there is; the others wait for it."""
    worker.default_handler(run="process")(in_process.naps)

    @worker.middleware
    async def around(message: Any, call: Any) -> object:
        ledger.note("start", message)
        return await call()


_ALL = (quick, slow, ignores_cancellation, blocking, hogging, in_transaction, once, in_own_process)
MODES = {mode.__name__: mode for mode in _ALL}


def main() -> None:
    settings = json.loads(sys.argv[1])
    lease = timedelta(seconds=settings.get("lease", 30))
    queue = AsyncQueue(settings["url"], schema=settings["schema"], lease=lease)
    worker = Worker(queue, concurrency=settings.get("concurrency", 50), processes=1)
    MODES[settings["mode"]](worker, Ledger(settings["ledger"]), settings)
    worker.run()


if __name__ == "__main__":
    main()
