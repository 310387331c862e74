"""Publishes steadily, with bursts, over many channels; some are limited, some tries fail."""

import random
import threading
import time
from types import TracebackType
from typing import Self

from laneway import NewMessage, Policy, Queue

from .terms import QUEUE, Terms

TICK = 0.05  # seconds
LIMITED = 100  # channels with a limit
FAILS = 0.02


class Load:
    """A thread that publishes until it is told to stop."""

    def __init__(self, url: str, terms: Terms) -> None:
        self._queue = Queue(url, name=QUEUE, upkeep_every=None)
        self._terms = terms
        self._dice = random.Random(1)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.published = 0
        self.trouble: BaseException | None = None

    def start(self) -> None:
        limited = Policy(concurrency=5)
        self._queue.set_policies({f"tenant-{n}": limited for n in range(LIMITED)})
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._publish()
        except BaseException as error:  # told by the verdict
            self.trouble = error

    def _publish(self) -> None:
        begun = last = time.monotonic()
        owed = 0.0
        while not self._stopping.wait(TICK):
            now = time.monotonic()
            owed += self._terms.rate_at(now - begun) * (now - last)
            last = now
            count, owed = int(owed), owed % 1
            answers = self._queue.publish_many([self._message() for _ in range(count)])
            self.published += len(answers)

    def _message(self) -> NewMessage:
        """A few tenants are loud, most are quiet."""
        tenant = int(self._terms.channels * self._dice.random() ** 3)
        kind = "fails" if self._dice.random() < FAILS else "soak"
        return NewMessage({"text": "x" * 200}, channel=f"tenant-{tenant}", kind=kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self.stop()
        self._queue.close()
