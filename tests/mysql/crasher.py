"""One process of the crash test: publishes, claims and settles until it is killed.

Its ledger is a file of its own, one line an event, written before and after what it tells of.
"""

import random
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from penstock import ConnectionUnavailable, NewMessage, Queue

LEASE = timedelta(seconds=2)
CHANNELS = ["loud", "loud", "loud", *(f"quiet {n}" for n in range(12)), "one", "slow"]


class Crasher:
    def __init__(self, url: str, name: str, ledger: Path, until: float) -> None:
        self._queue = Queue(url, lease=LEASE, worker=name, upkeep_every=timedelta(seconds=0.3))
        self._name = name
        self._until = until
        self._dice = random.Random(name)
        self._ledger = ledger.open("a", buffering=1)
        self._published = 0

    def run(self) -> None:
        while time.time() < self._until:
            for step in (self._publish, self._work):
                self._guarded(step)
        self._queue.close()

    def _guarded(self, step: Callable[[], None]) -> None:
        """A server that went away is expected; anything else is a defect."""
        try:
            step()
        except ConnectionUnavailable:
            time.sleep(0.05)
        except Exception as error:
            self._note("error", repr(error))
            raise

    def _publish(self) -> None:
        messages = [self._message() for _ in range(self._dice.randint(1, 20))]
        self._note("tried", *(str(message.key) for message in messages))
        published = self._queue.publish_many(messages)
        self._note("published", *(str(answer.id) for answer in published))

    def _message(self) -> NewMessage:
        self._published += 1
        key = f"{self._name}-{self._published}"
        delay = timedelta(seconds=0.2) if self._dice.random() < 0.1 else None
        channel, priority = self._dice.choice(CHANNELS), self._dice.choice([0, 0, 0, 5])
        return NewMessage(key, channel=channel, key=key, delay=delay, priority=priority)

    def _work(self) -> None:
        claim = list(self._queue.claim(self._dice.randint(1, 40)))
        self._dice.shuffle(claim)
        back = claim[: len(claim) // 10]
        later, done = claim[len(back) : 2 * len(back)], claim[2 * len(back) :]
        self._queue.give_back(back)
        self._queue.defer(later, timedelta(seconds=0.1), state={"seen": True})
        for message, answer in zip(done, self._queue.complete(done), strict=True):
            if not answer.lost:
                self._note("completed", str(message.id), message.text())

    def _note(self, what: str, *words: str) -> None:
        self._ledger.write("\t".join([what, *words]) + "\n")


if __name__ == "__main__":
    url, name, ledger, until = sys.argv[1:]
    Crasher(url, name, Path(ledger), float(until)).run()
