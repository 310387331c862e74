"""Shared limits under load: ``make bench-limits``.

Sixteen claimers on 200 tenants, all messages behind one limit: first without work, to compare the
rate with that of the same messages without a limit; then behind 20 at once and behind a rate, where
one claim in fifty is dropped with what it holds, as by a worker that is killed. Prints whether more
ran or started than allowed (by what the claimers saw, not by the tables), and how often each of the
tenants was served. Limits do not change while it runs, and no claimer is frozen.
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres

CLAIMERS = 16
TENANTS = 200
CONCURRENCY = 20
LEASE = 2.0
DROPPED = 0.02


class Run(NamedTuple):
    """A message as its claimer saw it: when it had it, until when at least, when it was claimed by
    the database's clock."""

    began: float
    ended: float
    claimed: float
    tenant: str


class Load:
    """Claims until told to stop; ``lose`` of the batches are dropped, as a killed worker would."""

    def __init__(self, url: str, schema: str, batch: int, work: float, lose: float) -> None:
        self.url, self.schema = url, schema
        self.batch, self.work, self.lose = batch, work, lose
        self.runs: list[Run] = []
        self.done = 0
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def claimer(self, number: int) -> None:
        choose = random.Random(number)
        with Queue(
            self.url, schema=self.schema, pool_size=1, lease=LEASE, upkeep_every=None
        ) as queue:
            while not self.stop.is_set():
                claim = queue.claim(self.batch)
                began = time.time()
                if not claim:
                    time.sleep(min(0.01, (claim.look_again or timedelta(1)).total_seconds()))
                    continue
                lost = choose.random() < self.lose
                if self.work:
                    time.sleep(self.work)
                until = max(message.until.timestamp() for message in claim)
                ended = until if lost else time.time()
                if not lost:
                    queue.complete(claim)
                with self._lock:
                    self.runs += [
                        Run(began, ended, m.claimed_at.timestamp(), m.channel) for m in claim
                    ]
                    self.done += 0 if lost else len(claim)

    def upkeep(self) -> None:
        with Queue(self.url, schema=self.schema, pool_size=1, upkeep_every=None) as queue:
            while not self.stop.is_set():
                queue.upkeep()
                time.sleep(0.2)


def most_at_once(runs: Sequence[Run]) -> int:
    edges = sorted([(run.began, 1) for run in runs] + [(run.ended, -1) for run in runs], key=_edge)
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def _edge(edge: tuple[float, int]) -> tuple[float, int]:
    return edge[0], edge[1]


def too_many_starts(runs: Sequence[Run], rate: float, burst: int) -> int:
    """By how many starts any window was over ``burst + window x rate``, at most."""
    times = sorted(run.claimed for run in runs)
    # The worst window that ends at each start: least of (number - rate x time) so far.
    lowest, over = float("inf"), 0.0
    for number, at in enumerate(times):
        lowest = min(lowest, number - rate * at)
        over = max(over, number + 1 - rate * at - lowest - burst)
    return max(0, int(over + 1e-6))


def served(runs: Sequence[Run]) -> str:
    """Of all tenants: those that never ran are counted with 0."""
    counts = Counter(run.tenant for run in runs)
    each = [counts[f"tenant-{number}"] for number in range(TENANTS)]
    mean = len(runs) / TENANTS
    ran = sum(count > 0 for count in each)
    return f"{ran} of {TENANTS} tenants ran, {min(each)} to {max(each)} times, mean {mean:.1f}"


def load(
    url: str,
    schema: str,
    seconds: float,
    messages: int,
    limits: Sequence[str],
    batch: int,
    work: float = 0.0,
    lose: float = 0.0,
) -> tuple[Load, float]:
    with Queue(url, schema=schema, upkeep_every=None) as queue:
        for first in range(0, messages, 10_000):
            queue.publish_many(
                [
                    NewMessage(b"", channel=f"tenant-{n % TENANTS}", limits=limits or None)
                    for n in range(first, min(first + 10_000, messages))
                ]
            )
        running = Load(url, schema, batch, work, lose)
        threads = [threading.Thread(target=running.claimer, args=(n,)) for n in range(CLAIMERS)]
        threads.append(threading.Thread(target=running.upkeep))
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        end = began + seconds
        while time.perf_counter() < end and running.done < messages:
            time.sleep(0.05)
        took = time.perf_counter() - began
        running.stop.set()
        for thread in threads:
            thread.join()
        return running, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    if options.url:
        report(options.url, options.seconds)
    else:
        with EmbeddedPostgres() as server:
            report(server.create_database("limits"), options.seconds)


def report(url: str, seconds: float) -> None:
    schemas = iter(f"bench_{number}" for number in range(100))

    def fresh() -> str:
        schema = next(schemas)
        with Queue(url, schema=schema) as queue:
            queue.install()
        return schema

    def limited(schema: str, **limits: object) -> None:
        with Queue(url, schema=schema) as queue:
            queue.limits["api"].set(**limits)  # type: ignore[arg-type]

    print("messages a second, 16 claimers, 200 tenants, claims of 5")
    rates: dict[str, float] = {}
    for name, names, concurrency in (
        ("no limit", (), None),
        ("a limit that never fills", ("api",), 1000),
        ("a limit of 20", ("api",), 20),
    ):
        schema = fresh()
        if concurrency:
            limited(schema, concurrency=concurrency)
        done, took = load(url, schema, seconds, 20_000, names, 5)
        rates[name] = done.done / took
        ratio = rates[name] / rates["no limit"]
        print(f"  {name:28} {rates[name]:8.0f}  {ratio:5.2f}  at once {most_at_once(done.runs)}")

    schema = fresh()
    limited(schema, concurrency=CONCURRENCY)
    done, _ = load(url, schema, seconds, 50_000, ("api",), 5, work=0.01, lose=DROPPED)
    print(
        f"concurrency 20, 2 % of claims dropped: {len(done.runs)} runs, "
        f"at once {most_at_once(done.runs)} of 20; {served(done.runs)}"
    )

    schema = fresh()
    limited(schema, rate=200, burst=20)
    done, took = load(url, schema, seconds, 50_000, ("api",), 5, lose=DROPPED)
    print(
        f"rate 200, burst 20, 2 % of claims dropped: {len(done.runs)} starts in {took:.1f} s, "
        f"too many: {too_many_starts(done.runs, 200, 20)}"
    )


if __name__ == "__main__":
    main()
