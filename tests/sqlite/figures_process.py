"""One of several processes on one file that do all there is to do with messages until they are
killed, and run upkeep all the time."""

import random
import sys
from datetime import timedelta
from typing import Any

from laneway import Message, NewMessage, Queue

KINDS = ("", "mail", "report")


def main(url: str) -> None:
    queue = Queue(url, lease=timedelta(seconds=1), upkeep_every=timedelta(milliseconds=20))
    while True:
        publish(queue)
        for message in queue.claim(random.randint(1, 30)):
            end(queue, message)
        queue.cancel([info.id for info in queue.messages(state="waiting", limit=2)])
        if random.random() < 0.3:
            queue.dead_letters.redrive(kind=random.choice(KINDS))
        if random.random() < 0.1:
            queue.dead_letters.discard(kind=random.choice(KINDS))


TIMES: list[dict[str, Any]] = [
    {},
    {"delay": timedelta(hours=1)},
    {"expires_in": timedelta(milliseconds=50)},
]


def publish(queue: Queue) -> None:
    queue.publish_many(
        [
            NewMessage(
                b"",
                f"channel {random.randrange(50)}",
                kind=random.choice(KINDS),
                max_attempts=2,
                key=f"key {random.randrange(1000)}",
                **random.choices(TIMES, [8, 1, 1])[0],
            )
            for _ in range(random.randint(1, 20))
        ]
    )


def end(queue: Queue, message: Message) -> None:
    chance = random.random()
    if chance < 0.5:
        queue.complete([message])
    elif chance < 0.7:
        queue.defer([message], timedelta(0), error=ValueError("again"))
    elif chance < 0.8:
        queue.fail([message], "no")
    elif chance < 0.85:
        queue.give_back([message])
    elif chance < 0.9:
        queue.defer([message], timedelta(0))
    # The others run out.


if __name__ == "__main__":
    main(sys.argv[1])
