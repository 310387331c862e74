"""One consumer process of the demo: claims, works a little, completes."""

import sys
import time
from contextlib import suppress
from datetime import timedelta

from penstock import Answer, LeaseLost, Queue

LEASE = timedelta(seconds=2)
WORK = 0.002  # seconds a message


def consume(url: str, name: str) -> None:
    """Until the queue is empty and stays so."""
    with Queue(url, worker=name, lease=LEASE) as queue:
        while True:
            claim = queue.claim(limit=20)
            for message in claim:
                time.sleep(WORK)
                # On a machine too slow for the lease somebody else has the message by now.
                with suppress(LeaseLost):
                    message.complete()
            if not claim:
                if claim.answer is Answer.EMPTY and claim.look_again is None and _done(queue):
                    return
                pause = claim.look_again or timedelta(seconds=0.2)
                time.sleep(min(max(pause.total_seconds(), 0.01), 0.2))


def _done(queue: Queue) -> bool:
    return not any(n.waiting or n.leased or n.scheduled for n in queue.numbers())


if __name__ == "__main__":
    consume(sys.argv[1], sys.argv[2])
