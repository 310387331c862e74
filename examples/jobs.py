"""A worker with retries, a limit and a schedule: ``laneway worker jobs``."""

import os
from datetime import timedelta

from laneway import INJECTED, Exponential, Message, Queue, Worker

queue = Queue(os.environ["DATABASE_URL"])
worker = Worker(queue, concurrency=50)


@worker.task(retry=Exponential(initial=1, max_delay=300, attempts=8), timeout=30)
def send_receipt(order: int, copy: bool = False, message: Message = INJECTED) -> None:
    if message.attempt == 1:
        raise TimeoutError("the mail server does not answer")  # retried after about a second
    print("receipt for order", order, "of", message.channel, flush=True)


@worker.task
async def report() -> None:
    print("the report", flush=True)


if __name__ == "__main__":
    queue.install()
    queue.channel("tenant-42").limit(concurrency=2, rate=10, burst=20)
    queue.schedule("reports", report, every=timedelta(seconds=10))
    send_receipt.using(channel="tenant-42").publish(9184)
    queue.close()
