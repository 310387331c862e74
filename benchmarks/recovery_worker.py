"""The worker of benchmarks.recovery: the first attempt of a message runs for ever, the second for a
while; both tick. What happens is appended to the ledger: what, process, message, attempt, time."""

import asyncio
import os
import sys
import time
from datetime import timedelta

from laneway import AsyncMessage, AsyncQueue, Worker

_TICK = 0.01
_SECOND_ATTEMPT = 1.0


def main(lease: float) -> None:
    worker = Worker(AsyncQueue(os.environ["RECOVERY_URL"]), lease=timedelta(seconds=lease))
    ledger = os.open(os.environ["RECOVERY_LEDGER"], os.O_WRONLY | os.O_APPEND)

    def note(what: str, id: int = 0, attempt: int = 0) -> None:
        line = f"{what} {os.getpid()} {id} {attempt} {time.monotonic()}\n"
        os.write(ledger, line.encode())

    @worker.default_handler
    async def handle(payload: None, message: AsyncMessage) -> None:
        note("start", message.id, message.attempt)
        begun = time.monotonic()
        while message.attempt == 1 or time.monotonic() < begun + _SECOND_ATTEMPT:
            await asyncio.sleep(_TICK)
            note("tick", message.id, message.attempt)
        note("end", message.id, message.attempt)

    @worker.on_start
    async def ready() -> None:
        note("ready")

    worker.run()


if __name__ == "__main__":
    main(float(sys.argv[1]))
