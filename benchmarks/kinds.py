"""What does a claim of one kind cost beside a claim of all? `python -m benchmarks.kinds`.

Buffers a message, of claims of a hundred. Only PostgreSQL: the others cannot claim by kind yet.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import NamedTuple, TypeVar

from laneway import NewMessage, Queue
from laneway.engines.postgresql import PostgresqlEngine
from laneway.plan import Plan
from laneway.taken import Taken

from .bench import PAYLOAD, Bench, running, say, tidy
from .meter import Meter
from .report import Table, show

T = TypeVar("T")

RED, BLUE = "red", "blue"
QUEUE = "default"
BATCH = 100
_CHUNK = 1000
_LEASE = timedelta(hours=1)


class Size(NamedTuple):
    messages: int = 10_000
    front: int = 1_000_000
    channels: Sequence[int] = (1, 100)


class Session:
    """Claims and completes through the engine's plans, and adds up the buffers of the claims."""

    def __init__(self, url: str) -> None:
        self._meter = Meter(url)
        self._engine = PostgresqlEngine()
        self.buffers = 0.0

    def claim(self, kinds: tuple[str, ...] | None) -> Taken:
        return self._run(self._engine.claim((QUEUE,), BATCH, _LEASE, "bench", kinds), True)

    def complete(self, taken: Taken) -> None:
        self._run(self._engine.complete(taken.rows), False)

    def close(self) -> None:
        self._meter.close()

    def _run(self, plan: Plan[T], counted: bool) -> T:
        try:
            statement = next(plan)
            while True:
                rows = self._meter.execute(statement)
                if counted:
                    self.buffers += self._meter.used.buffers
                statement = plan.send(rows)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


def fill(queue: Queue, kinds: Sequence[str], count: int, channels: int) -> None:
    """``count`` messages of each kind, in batches of one kind in turn."""

    def message(number: int, kind: str) -> NewMessage:
        return NewMessage(PAYLOAD, channel=f"c{number % channels}", kind=kind)

    for start in range(0, count, _CHUNK):
        numbers = range(start, min(start + _CHUNK, count))
        for kind in kinds:
            queue.publish_many([message(n, kind) for n in numbers])


def by_kind(queue: Queue) -> None:
    """The queue is claimed by kind from now on, and all is found so."""
    for _ in range(5):
        queue.claim(kinds=[RED])


def drain(url: str, kinds: tuple[str, ...] | None, count: int) -> float:
    """Buffers a message; each was there at the first look."""
    with closing(Session(url)) as session:
        left = count
        while left:
            taken = session.claim(kinds)
            assert taken.rows, f"{left} messages were not found"
            assert kinds is None or {row[4] for row in taken.rows} <= set(kinds)
            session.complete(taken)
            left -= len(taken.rows)
        return session.buffers / count


def measure(bench: Bench, size: Size) -> Table:
    table = Table(
        f"Claims of one kind, {size.messages} messages of it",
        ("case", "channels", "buffers a message", "to unfiltered"),
    )
    for channels in size.channels:
        say(f"{channels} channels")
        with bench.database() as url, Queue(url, upkeep_every=None) as queue:
            fill(queue, (RED, BLUE), size.messages, channels)
            tidy(url)
            plain = drain(url, None, 2 * size.messages)
        table.add("unfiltered", channels, round(plain, 2), 1.0)
        with bench.database() as url, Queue(url, upkeep_every=None) as queue:
            by_kind(queue)
            fill(queue, (RED, BLUE), size.messages, channels)
            tidy(url)
            both = sum(drain(url, (kind,), size.messages) for kind in (RED, BLUE)) / 2
        table.add("two kinds, a worker each", channels, round(both, 2), round(both / plain, 2))
        with bench.database() as url, Queue(url, upkeep_every=None) as queue:
            by_kind(queue)
            fill(queue, (BLUE,), size.front, channels)
            fill(queue, (RED,), size.messages, channels)
            tidy(url)
            behind = drain(url, (RED,), size.messages)
        name = f"{size.front} of the other in front"
        table.add(name, channels, round(behind, 2), round(behind / plain, 2))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = Size(1000, 10_000) if options.quick else Size()
    with running() as bench:
        show([measure(bench, size)], as_json=options.json)


if __name__ == "__main__":
    main()
