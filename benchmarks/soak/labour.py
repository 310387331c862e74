"""One worker process: says every second on stdout how many it has done, how late they were picked
up, and how much memory it has."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from typing import Any

import psutil

from laneway import AsyncMessage, AsyncQueue, Worker

from .terms import QUEUE, URL

RATIO = 1.1  # of a bucket of the histogram to the one before
FIRST = 0.001  # seconds


class Labour:
    def __init__(self, url: str) -> None:
        self._worker = Worker(AsyncQueue(url, name=QUEUE), concurrency=50)
        self._worker.handler("soak")(self._handle)
        self._worker.handler("fails")(self._fail)
        self._done = 0
        self._late: Counter[int] = Counter()

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._worker.stop)
        telling = asyncio.create_task(self._tell())
        try:
            await self._worker.serve()
        finally:
            telling.cancel()
            self._say()

    async def _handle(self, payload: Any, message: AsyncMessage) -> None:
        self._note(message)

    async def _fail(self, payload: Any, message: AsyncMessage) -> None:
        """The first try fails, so that failures are part of the load."""
        self._note(message)
        if message.attempt == 1:
            raise ValueError("the first try")

    def _note(self, message: AsyncMessage) -> None:
        self._done += 1
        late = (message.claimed_at - message.due).total_seconds()
        self._late[bucket(late)] += 1

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._say()

    def _say(self) -> None:
        line = {
            "done": self._done,
            "late": {str(number): count for number, count in self._late.items()},
            "memory": psutil.Process().memory_info().rss,
        }
        self._late.clear()
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def bucket(seconds: float) -> int:
    """Logarithmic, to a tenth."""
    number, edge = 0, FIRST
    while seconds > edge and number < 200:
        number, edge = number + 1, edge * RATIO
    return number


def edge_of(number: int) -> float:
    """The longest of a bucket, in seconds."""
    return float(FIRST * RATIO**number)


if __name__ == "__main__":
    logging.getLogger("laneway").setLevel(logging.CRITICAL)  # the first tries fail on purpose
    asyncio.run(Labour(os.environ[URL]).run())
