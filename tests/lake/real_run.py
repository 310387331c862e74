"""A short real life of a queue: every outcome that the history knows, by workers and by hand."""

import time
from datetime import timedelta

from laneway import AsyncMessage, Constant, Defer, Fail, LeaseLost, Message, Queue, Worker
from tests.place import Place

LATER = timedelta(hours=5)
HOSTILE = "<script>alert('x')</script>"
SHORT = timedelta(seconds=1)


def live_through(place: Place) -> None:
    """Leaves something behind of each kind: waiting, scheduled, leased, dead."""
    with Queue(place.url, schema=place.schema, worker="hand", upkeep_every=None) as queue:
        queue.install()
        queue.configure(backoff_initial=timedelta(milliseconds=10))
        publish(queue)
        _worker(queue).run(until_empty=True)
        bring_back(queue)
        _worker(queue).run(until_empty=True)
        lose_leases(queue)
        end_unstarted(queue)
        leave_some(queue)
    with Queue(place.url, schema=place.schema, name=HOSTILE, upkeep_every=None) as queue:
        be_hostile(queue)


def publish(queue: Queue) -> None:
    for n in range(40):
        queue.publish({"n": n}, channel=f"tenant-{n % 7}", kind="easy")
    for n in range(12):
        queue.publish({"n": n}, channel="tenant-1", kind="flaky", max_attempts=6)
    for n in range(6):
        queue.publish({"n": n}, channel="tenant-2", kind="hopeless")
        queue.publish({"n": n}, channel="tenant-3", kind="steps")


def _worker(queue: Queue) -> Worker:
    worker = Worker(queue, concurrency=8)

    @worker.handler("easy")
    def easy() -> None:
        time.sleep(0.002)

    @worker.handler("flaky", retry=Constant(every=0.01, attempts=6))
    def flaky(body: dict[str, int], message: Message) -> None:
        if message.attempt <= body["n"] % 4:
            raise TimeoutError(f"no answer from 10.0.0.{body['n']} at 0x7f{body['n']:06x}")

    @worker.handler("hopeless", run="async")
    async def hopeless(body: dict[str, int], message: AsyncMessage) -> None:
        if message.attempt < 2 or body["n"] % 2:
            raise Fail("bad", error=ValueError(f"order {body['n']} has no currency\n\n"))

    @worker.handler("steps")
    def steps(body: dict[str, int], message: Message) -> object:
        done = message.state_json() or 0
        return Defer(timedelta(milliseconds=20), state=done + 1) if done < 2 else None

    return worker


def bring_back(queue: Queue) -> None:
    letters = sorted(letter.id for letter in queue.dead_letters.list(limit=100))
    queue.dead_letters.redrive(letters[:4])
    queue.dead_letters.discard(letters[4:5])


def lose_leases(queue: Queue) -> None:
    """Two run out, one of them is completed too late; one message is given back."""
    for n in range(3):
        queue.publish({"n": n}, channel="tenant-4", kind="lost")
    late, lost, back = queue.claim(limit=3, lease=SHORT)
    back.give_back()
    time.sleep(1.1 * SHORT.total_seconds())
    queue.upkeep()
    try:
        late.complete()
    except LeaseLost:
        pass
    else:
        raise AssertionError("nobody took the lease back")
    assert lost.id != late.id
    time.sleep(0.05)
    for message in queue.claim(limit=3):
        message.complete()


def end_unstarted(queue: Queue) -> None:
    soon = queue.publish({}, channel="tenant-5", kind="easy")
    never = queue.publish({}, channel="tenant-5", kind="easy", delay=LATER)
    queue.cancel([made.id for made in (soon, never) if made.id])
    queue.publish({}, channel="tenant-5", kind="easy", expires_in=timedelta(milliseconds=1))
    time.sleep(0.05)
    queue.upkeep()


def leave_some(queue: Queue) -> None:
    queue.publish({}, channel="held", kind="easy")
    queue.claim(limit=1, lease=timedelta(hours=1))
    for channel in ("tenant-0", "tenant-6"):
        queue.publish({}, channel=channel, kind="easy")
    queue.publish({}, channel="tenant-0", kind="easy", delay=LATER)


def be_hostile(queue: Queue) -> None:
    """Names and errors that would be a script if a page believed them."""
    for _ in range(2):
        queue.publish({}, channel=HOSTILE, kind=HOSTILE)
    first, second = queue.claim(limit=2)
    first.complete()
    second.fail(HOSTILE, error=ValueError(HOSTILE))
