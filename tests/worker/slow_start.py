"""A worker in a process of its own whose start hook takes its time, for tests that stop it then."""

import asyncio
import sys

from laneway import Queue, Worker


def main() -> None:
    url, seconds = sys.argv[1:]
    queue = Queue(url)
    queue.install()
    worker = Worker(queue)

    @worker.on_start
    async def start() -> None:
        sys.stdout.write("starting\n")
        sys.stdout.flush()
        await asyncio.sleep(float(seconds))

    @worker.default_handler
    async def handle(payload: int) -> None: ...

    worker.run()


if __name__ == "__main__":
    main()
