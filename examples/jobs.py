"""A worker with a retry and a schedule: ``penstock worker jobs:worker``."""

import os
from datetime import timedelta

from penstock import Exponential, Message, Queue, Worker

queue = Queue(os.environ["DATABASE_URL"])
worker = Worker(queue, concurrency=50)


@worker.handler("send_receipt", retry=Exponential(first=1, most=300, attempts=8), timeout=30)
def send_receipt(order: dict[str, int], message: Message) -> None:
    if message.attempt == 1:
        raise TimeoutError("the mail server does not answer")  # tried again after a second
    print("receipt for order", order["id"], "of", message.channel, flush=True)


@worker.handler("report")
async def report() -> None:
    print("the report", flush=True)


if __name__ == "__main__":
    queue.install()  # once, and after every upgrade; safe to repeat
    queue.schedule("reports", every=timedelta(seconds=10), kind="report")
    queue.publish({"id": 9184}, kind="send_receipt", channel="tenant-42")
    queue.close()
