"""One of many processes on one file: publishes and consumes until it is killed, and keeps a log.

Every line of the log is passed to the operating system before the next step.
"""

import os
import random
import sqlite3
import sys
import time
from datetime import timedelta

from laneway import Message, Queue
from laneway.drivers.sqlite.url import read_url

CHANNELS = 5
LEASE = timedelta(seconds=1)


class Log:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


class ClientProcess:
    def __init__(self, url: str, log: str) -> None:
        self.queue = Queue(url, lease=LEASE, upkeep_every=timedelta(milliseconds=200))
        self.mine = sqlite3.connect(read_url(url).path, timeout=60)
        self.log = Log(log)
        self.published = 0

    def act(self) -> None:
        random.choice([self.publish, self.consume, self.consume])()

    def publish(self) -> None:
        payloads = [f"{os.getpid()}.{self.published + n}" for n in range(random.randint(1, 20))]
        self.published += len(payloads)
        self.log.write("try", *payloads)
        answers = self.queue.publish_many(payloads, channel=f"c{random.randrange(CHANNELS)}")
        self.log.write("ack", *(answer.id for answer in answers))

    def consume(self) -> None:
        for message in self.queue.claim(random.randint(1, 10)):
            verb = random.choice([self.complete, self.complete_with_effect, self.put_back])
            verb(message)

    def complete(self, message: Message) -> None:
        if not self.queue.complete([message])[0].lost:
            self.log.write("done", message.id, message.text())

    def complete_with_effect(self, message: Message) -> None:
        """The effect's primary key would refuse a second one."""
        with self.mine:
            if self.queue.complete([message], connection=self.mine)[0].lost:
                return
            self.mine.execute("insert into effect values (?, ?)", (message.id, message.text()))
        self.log.write("done", message.id, message.text())

    def put_back(self, message: Message) -> None:
        verb = random.choice([self.queue.give_back, self.queue.defer, self.queue.extend])
        verb([message])


def main(url: str, log: str, seconds: float) -> None:
    client = ClientProcess(url, log)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.act()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
