"""Does a claim on SQLite cost the same whatever else is there? `python -m benchmarks.sqlite_flat`.

Counted in steps of SQLite's virtual machine, which do not depend on the machine they run on.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

from laneway import NewMessage, Policy, Queue
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.sqlite import SqliteEngine
from laneway.model import Draft, HeldLease
from laneway.plan import Plan

from .bench import PAYLOAD, say
from .report import Table, show

T = TypeVar("T")

BATCH = 100
_LEASE = timedelta(seconds=60)
_CHUNK = 10_000
_HOUR = timedelta(hours=1)


class Case(NamedTuple):
    """``fill`` gets the queue ready; ``names`` are the channels that the cycle publishes to."""

    name: str
    first: str
    fill: Callable[[Queue], None]
    names: Sequence[str]


class Steps(NamedTuple):
    """Of one message, in the median batch."""

    claim: float
    complete: float


def names(count: int) -> list[str]:
    return [f"channel {number}" for number in range(count)]


def fill(
    client: Queue,
    messages: int,
    channels: int,
    queue: str | None = None,
    delay: timedelta | None = None,
) -> None:
    for start in range(0, messages, _CHUNK):
        numbers = range(start, min(start + _CHUNK, messages))
        client.publish_many(
            [NewMessage(PAYLOAD, f"channel {n % channels}", queue, delay=delay) for n in numbers]
        )


def many_channels(count: int) -> Case:
    fills = partial(fill, messages=count, channels=count)
    return Case(f"{count:,} channels", "1,000 channels", fills, names(count))


def backlog(count: int, channels: int) -> Case:
    fills = partial(fill, messages=count, channels=channels)
    first = f"1,000 waiting on {channels}"
    return Case(f"{count:,} waiting on {channels}", first, fills, names(channels))


def beside(what: str, fills: Callable[[Queue], None]) -> Case:
    """A hundred busy channels beside something that is not to be claimed."""

    def both(queue: Queue) -> None:
        fills(queue)
        fill(queue, 1_000, 100)

    return Case(what, "nothing else", both, names(100))


def blocked(queue: Queue, count: int) -> None:
    """Channels whose limit is reached, with more waiting."""
    for start in range(0, count, _CHUNK):
        wanted = [f"blocked {n}" for n in range(start, min(start + _CHUNK, count))]
        queue.set_policies(dict.fromkeys(wanted, Policy(concurrency=1)))
        queue.publish_many([NewMessage(b"", name) for name in wanted for _ in range(2)])
    while queue.claim(_CHUNK, lease=timedelta(days=1)):
        pass


def cases(most: int) -> list[Case]:
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most]
    some = min(most, 100_000)
    return [
        *(many_channels(size) for size in sizes if size <= some),
        *(backlog(size, channels) for channels in (1, 100) for size in sizes),
        beside("nothing else", lambda queue: None),
        beside(f"{some:,} channels blocked", partial(blocked, count=some)),
        beside(
            f"{most:,} scheduled for later",
            partial(fill, messages=most, channels=100, delay=_HOUR),
        ),
        beside(
            f"{some:,} in another queue",
            partial(fill, messages=some, channels=1_000, queue="other"),
        ),
    ]


class Cycle:
    """Publishes, claims and completes batches on a connection that counts its steps."""

    def __init__(self, url: str, channels: Sequence[str]) -> None:
        self._engine = SqliteEngine()
        self._channels = channels
        self._published = 0
        self._connection = connect(read_url(url))

    def run(self, batches: int) -> Steps:
        with closing(self._connection):
            costs = [self._batch() for _ in range(batches)]
        return Steps(*(median(column) / BATCH for column in zip(*costs, strict=True)))

    def _batch(self) -> tuple[int, int]:
        engine = self._engine
        self._count(engine.messages.publish([self._draft() for _ in range(BATCH)]))
        taken, claim = self._count(engine.claims.claim(("default",), BATCH, _LEASE, "bench"))
        if len(taken.rows) != BATCH:
            raise RuntimeError(f"claimed {len(taken.rows)} instead of {BATCH}")
        _, complete = self._count(
            engine.leases.complete([HeldLease(row[0], row[1]) for row in taken.rows])
        )
        return claim, complete

    def _count(self, plan: Plan[T]) -> tuple[T, int]:
        """The answer, and how many steps it took."""
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        self._connection.execute("begin immediate")
        self._connection.set_progress_handler(step, 1)
        answer = drive(plan, lambda statement: execute(self._connection, statement))
        self._connection.set_progress_handler(None, 0)
        self._connection.execute("commit")
        return answer, steps

    def _draft(self) -> Draft:
        channel = self._channels[self._published % len(self._channels)]
        self._published += 1
        name = "application/octet-stream"
        rest = (None, None, None, 0, None, None, None, None, 20)
        return Draft(PAYLOAD, "default", channel, "", name, *rest)


def measure(folder: Path, wanted: Sequence[Case], batches: int) -> Table:
    columns = ["case", "steps of the claim", "of the complete", "against the first"]
    table = Table("SQLite: steps of its virtual machine per message", columns)
    firsts: dict[str, float] = {}
    for number, case in enumerate(wanted):
        began = time.monotonic()
        url = f"sqlite:///{folder}/{number}.db?synchronous=normal"
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            case.fill(queue)
        steps = Cycle(url, case.names).run(batches)
        total = firsts.setdefault(case.name, sum(steps))
        first = firsts.get(case.first, total)
        table.add(case.name, *steps, total / first)
        say(f"sqlite: {case.name}: {total:.0f} steps, {time.monotonic() - began:.0f} s")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 instead of a million")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wanted = cases(100_000 if options.quick else 1_000_000)
        show([measure(Path(folder), wanted, 20)], as_json=options.json)


if __name__ == "__main__":
    main()
