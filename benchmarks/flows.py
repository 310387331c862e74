"""What does a flow cost beside plain messages? `python -m benchmarks.flows`.

Published and drained by one client in claims of a hundred. A ratio against plain messages of the
same round. Where few nodes are ready at a time, because each step waits for the one before, claims
are small whatever a node costs: such a flow is measured against plain messages that are claimed in
the same steps.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres

from .report import Table, show

_BATCH = 100
_WIDTH = 10  # of what splits and merges
_BRANCHES = 100  # that do so side by side
_UPKEEP = 5_000  # messages from one call of upkeep to the next, at most
_STEPWISE = 20  # a part of the messages is enough where claims are small
_COLUMNS = ("database", "messages", "shape", "messages a second", "beside", "ratio", "target")


def plain(queue: Queue, count: int) -> None:
    for start in range(0, count, 1000):
        queue.publish_many([NewMessage(n) for n in range(start, min(start + 1000, count))])


def fan_in(queue: Queue, count: int) -> None:
    with queue.flow("fan in") as flow:
        parents = [flow.add(n) for n in range(count - 1)]
        flow.add(count, after=parents)


def split_and_merge(queue: Queue, count: int) -> None:
    with queue.flow("split and merge") as flow:
        first = flow.add(0)
        flow.add(count, after=[flow.add(n, after=first) for n in range(count - 2)])


def branches(queue: Queue, count: int) -> None:
    """Each splits into ten and merges them, again and again."""
    _split_again_and_again(queue, count, _BRANCHES)


def one_branch(queue: Queue, count: int) -> None:
    _split_again_and_again(queue, count, 1)


def _split_again_and_again(queue: Queue, count: int, side_by_side: int) -> None:
    with queue.flow("again and again") as flow:
        last = [flow.add(n) for n in range(side_by_side)]
        for _ in range(count // (_WIDTH + 1) // side_by_side):
            for branch, node in enumerate(last):
                split = [flow.add(n, after=node) for n in range(_WIDTH)]
                last[branch] = flow.add(0, after=split)


class Shape(NamedTuple):
    """``beside``: the plain messages that it is compared with; ``steps``: how many are claimed, in
    turn."""

    publish: Callable[[Queue, int], None]
    beside: str | None = "plain"
    steps: tuple[int, ...] = (_BATCH,)
    part: int = 1


SHAPES: dict[str, Shape] = {
    "plain": Shape(plain, None),
    "fan-in": Shape(fan_in),
    "split and merge": Shape(split_and_merge),
    f"{_BRANCHES} branches": Shape(branches),
    "plain, stepwise": Shape(plain, None, (1, _WIDTH), _STEPWISE),
    "one branch": Shape(one_branch, "plain, stepwise", part=_STEPWISE),
}


def rate(queue: Queue, shape: Shape, count: int) -> float:
    """Messages a second, from the first publish to the last end. Upkeep is called as often for each
    shape: it counts what has ended, and goes on where the end of a node has left thousands."""
    began, done, kept_up, steps = time.perf_counter(), 0, 0, cycle(shape.steps)
    shape.publish(queue, count)
    while done < count:
        claim = queue.claim(next(steps))
        queue.complete(claim)
        done += len(claim)
        if not claim or done - kept_up >= _UPKEEP:
            tidied, kept_up = queue.upkeep().tidied, done
            if not claim and not tidied:
                break
    queue.upkeep()
    assert done >= count * 0.9, f"{done} of {count} ended"
    return done / (time.perf_counter() - began)


def measure(name: str, url: str, count: int, rounds: int, table: Table) -> None:
    found: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    with Queue(url, upkeep_every=None, lease=600, call_timeout=600) as queue:
        queue.install()
        for _ in range(rounds):
            for shape, how in SHAPES.items():
                found[shape].append(rate(queue, how, count // how.part))
    for shape, how in SHAPES.items():
        rates, beside = found[shape], how.beside or shape
        ratio = median(one / base for one, base in zip(rates, found[beside], strict=True))
        target = "-" if how.beside is None else 0.5
        messages, each = count // how.part, round(median(rates))
        table.add(name, messages, shape, each, how.beside or "-", round(ratio, 2), target)


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
    parser.add_argument("--only", default="", help="of which database")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = Table("Flows, beside plain messages", _COLUMNS)
    with databases() as urls:
        for name, url in urls.items():
            if not name.startswith(options.only):
                continue
            measure(name, url, options.messages, options.rounds, table)
    show([table], as_json=options.json)


if __name__ == "__main__":
    main()
