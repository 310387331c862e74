"""One process of the crash test: publishes, claims and settles until it is killed.

It logs to a file of its own, one line for each event, before and after each call.
"""

import random
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from laneway import NewMessage, Queue
from laneway.errors import ConnectionUnavailable

LEASE = timedelta(seconds=2)
CHANNELS = ["loud", "loud", "loud", *(f"quiet {n}" for n in range(12)), "one", "slow"]


class CrashProcess:
    def __init__(self, url: str, name: str, log: Path, end: Path) -> None:
        self._queue = Queue(url, lease=LEASE, worker=name, upkeep_every=timedelta(seconds=0.3))
        self._name = name
        self._end = end
        self._rng = random.Random(name)
        self._log = log.open("a", buffering=1)
        self._published = 0

    def run(self) -> None:
        while not self._end.exists():
            for step in (self._publish, self._work):
                self._run(step)
        self._queue.close()

    def _run(self, step: Callable[[], None]) -> None:
        """Losing the server is expected; any other error is a defect."""
        try:
            step()
        except ConnectionUnavailable:
            time.sleep(0.05)
        except Exception as error:
            self._write("error", repr(error))
            raise

    def _publish(self) -> None:
        messages = [self._message() for _ in range(self._rng.randint(1, 20))]
        self._write("tried", *(str(message.key) for message in messages))
        published = self._queue.publish_many(messages)
        self._write("published", *(str(answer.id) for answer in published))

    def _message(self) -> NewMessage:
        self._published += 1
        key = f"{self._name}-{self._published}"
        delay = timedelta(seconds=0.2) if self._rng.random() < 0.1 else None
        channel, priority = self._rng.choice(CHANNELS), self._rng.choice([0, 0, 0, 5, 200])
        return NewMessage(key, channel=channel, key=key, delay=delay, priority=priority)

    def _work(self) -> None:
        claim = list(self._queue.claim(self._rng.randint(1, 40)))
        self._rng.shuffle(claim)
        back = claim[: len(claim) // 10]
        later, done = claim[len(back) : 2 * len(back)], claim[2 * len(back) :]
        self._queue.give_back(back)
        self._queue.defer(later, timedelta(seconds=0.1), state={"seen": True})
        for message, answer in zip(done, self._queue.complete(done), strict=True):
            if not answer.lost:
                self._write("completed", str(message.id), message.text())

    def _write(self, what: str, *words: str) -> None:
        self._log.write("\t".join([what, *words]) + "\n")


if __name__ == "__main__":
    url, name, log, end = sys.argv[1:]
    CrashProcess(url, name, Path(log), Path(end)).run()
