"""What does a flow cost beside plain messages? `python -m benchmarks.flows`.

Published and drained by one client in claims of a hundred: plain messages, a flow whose last node
waits for all others, and one that splits and merges again and again. A ratio against the plain
messages of the same round.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres

from .report import Table, show

_BATCH = 100
_WIDTH = 10  # of what splits and merges
_COLUMNS = ("database", "messages", "shape", "messages a second", "ratio", "target")


def plain(queue: Queue, count: int) -> None:
    for start in range(0, count, 1000):
        queue.publish_many([NewMessage(n) for n in range(start, min(start + 1000, count))])


def fan_in(queue: Queue, count: int) -> None:
    with queue.flow("fan in") as flow:
        parents = [flow.add(n) for n in range(count - 1)]
        flow.add(count, after=parents)


def split_and_merge(queue: Queue, count: int) -> None:
    with queue.flow("split and merge") as flow:
        last = flow.add(0)
        for _ in range(count // (_WIDTH + 1)):
            last = flow.add(0, after=[flow.add(n, after=last) for n in range(_WIDTH)])


SHAPES: dict[str, Callable[[Queue, int], None]] = {
    "plain": plain,
    "fan-in": fan_in,
    "split and merge": split_and_merge,
}


def rate(queue: Queue, publish: Callable[[Queue, int], None], count: int) -> float:
    """Messages a second, from the first publish to the last end."""
    began, done = time.perf_counter(), 0
    publish(queue, count)
    while claim := queue.claim(_BATCH):
        queue.complete(claim)
        done += len(claim)
    assert done >= count - _WIDTH - 1, f"{done} of {count} ended"
    return done / (time.perf_counter() - began)


def measure(name: str, url: str, count: int, rounds: int, table: Table) -> None:
    found: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        for _ in range(rounds):
            for shape, publish in SHAPES.items():
                found[shape].append(rate(queue, publish, count))
                queue.upkeep()
    for shape, rates in found.items():
        ratio = median(one / base for one, base in zip(rates, found["plain"], strict=True))
        target = "-" if shape == "plain" else 0.5
        table.add(name, count, shape, round(median(rates)), round(ratio, 2), target)


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    with (
        EmbeddedPostgres(version=18) as server,
        EmbeddedMariaDB() as mariadb,
        tempfile.TemporaryDirectory() as folder,
    ):
        yield {
            "PostgreSQL": server.create_database("flows"),
            "MariaDB": mariadb.create_database("flows"),
            "SQLite": f"sqlite:///{Path(folder)}/flows.db",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = Table("Flows, beside plain messages", _COLUMNS)
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url, options.messages, options.rounds, table)
    show([table], as_json=options.json)


if __name__ == "__main__":
    main()
