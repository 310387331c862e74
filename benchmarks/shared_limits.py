"""Shared limits under load: ``make bench-limits``.

Sixteen claimers on 200 tenants, all messages behind one limit: first without work, to compare the
rate with that of the same messages without a limit: sixteen claimers, and four, as many as have
room behind a limit of 20 with claims of 5. Then with work of 10 ms: without a limit, and behind one
of 20, which is full. Last behind a limit of 20 at once and another one with a rate: one claim in
fifty is dropped with what it holds, as by a worker that is killed, one in two hundred is held for
longer than its lease and settled afterwards, as by one that was frozen, and the limits are lowered
and raised again on the way.

Prints whether more ran or started than allowed (by what the claimers saw, not by the tables), and
how far any tenant was from its share, in starts and in percent: of a mean of 14 starts one is 7 %,
so these two go on until the mean is 40, or for ten times as long as was asked for.
"""

import argparse
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from laneway import NewMessage, Queue
from laneway.dev.embedded import EmbeddedPostgres

CLAIMERS = 16
TENANTS = 200
CONCURRENCY = 20
LEASE = 2.0
WORK = 0.01
DROPPED = 0.02
FROZEN = 0.005
MEAN = 40
LONGEST = 10
NEVER = float("inf")


class Run(NamedTuple):
    """A message as its claimer saw it: when it had it, until when at least, when it was claimed by
    the database's clock."""

    began: float
    ended: float
    claimed: float
    tenant: str


class Change(NamedTuple):
    """A limit that is set after this part of the time."""

    after: float
    name: str
    limits: dict[str, Any]


class Load:
    """Claims until told to stop; ``lose`` of the batches are dropped, as a killed worker would, and
    ``freeze`` of them held for longer than their leases."""

    def __init__(
        self, url: str, schema: str, batch: int, work: float, lose: float, freeze: float
    ) -> None:
        self.url, self.schema = url, schema
        self.batch, self.work, self.lose, self.freeze = batch, work, lose, freeze
        self.stale = 0
        self.late = 0
        self.runs: list[Run] = []
        self.changed: list[tuple[float, Change]] = []
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
                frozen = not lost and choose.random() < self.freeze
                if self.work:
                    time.sleep(self.work)
                if frozen:
                    self.stop.wait(1.5 * LEASE)
                # On a busy machine others are late too: no limit counts what has no lease any more.
                # What a claim took and what it started behind a limit have leases of their own.
                ended = NEVER if lost or frozen else time.time()
                late = any(ended > m.until.timestamp() for m in claim) and ended < NEVER
                stale = 0
                if not lost:
                    stale = sum(answer.lost for answer in queue.complete(claim))
                with self._lock:
                    self.stale += stale
                    self.late += late
                    self.runs += [
                        Run(
                            began,
                            min(ended, m.until.timestamp()),
                            m.claimed_at.timestamp(),
                            m.channel,
                        )
                        for m in claim
                    ]
                    self.done += 0 if lost else len(claim) - stale

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
    """Of all tenants: those that never ran are counted with 0. All have the same share."""
    counts = Counter(run.tenant for run in runs)
    each = [counts[f"tenant-{number}"] for number in range(TENANTS)]
    mean = len(runs) / TENANTS
    ran = sum(count > 0 for count in each)
    far = max(abs(count - mean) for count in each)
    times = f"{min(each)} to {max(each)} times, mean {mean:.1f}"
    share = f"at most {far:.1f} starts or {far / mean if mean else 0.0:.1%} from its share"
    return f"{ran} of {TENANTS} tenants ran, {times}: {share}"


def load(
    url: str,
    schema: str,
    seconds: float,
    messages: int,
    limits: Sequence[str],
    batch: int,
    work: float = 0.0,
    lose: float = 0.0,
    freeze: float = 0.0,
    changes: Sequence[Change] = (),
    starts: int = 0,
    claimers: int = CLAIMERS,
) -> tuple[Load, float]:
    """For so many seconds; while there were fewer than so many ``starts``, for longer."""
    with Queue(url, schema=schema, upkeep_every=None) as queue:
        for first in range(0, messages, 10_000):
            queue.publish_many(
                [
                    NewMessage(b"", channel=f"tenant-{n % TENANTS}", limits=limits or None)
                    for n in range(first, min(first + 10_000, messages))
                ]
            )
        running = Load(url, schema, batch, work, lose, freeze)
        threads = [threading.Thread(target=running.claimer, args=(n,)) for n in range(claimers)]
        threads.append(threading.Thread(target=running.upkeep))
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        end = began + seconds
        left = list(changes)
        last = end + (LONGEST - 1) * seconds
        while running.done < messages and (
            time.perf_counter() < end or (len(running.runs) < starts and time.perf_counter() < last)
        ):
            if left and time.perf_counter() >= began + left[0].after * seconds:
                change = left.pop(0)
                queue.limits[change.name].set(**change.limits)
                running.changed.append((time.time(), change))
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
    for name, names, concurrency, claimers in (
        ("no limit", (), None, CLAIMERS),
        ("no limit, four claimers", (), None, 4),
        ("a limit that never fills", ("api",), 1000, CLAIMERS),
        ("a limit of 20", ("api",), 20, CLAIMERS),
    ):
        schema = fresh()
        if concurrency:
            limited(schema, concurrency=concurrency)
        done, took = load(url, schema, seconds, 20_000, names, 5, claimers=claimers)
        rates[name] = done.done / took
        ratio = rates[name] / rates["no limit"]
        print(f"  {name:28} {rates[name]:8.0f}  {ratio:5.2f}  at once {most_at_once(done.runs)}")

    done, took = load(url, fresh(), seconds, 50_000, (), 5, work=WORK)
    free = done.done / took
    schema = fresh()
    limited(schema, concurrency=CONCURRENCY)
    done, took = load(url, schema, seconds, 50_000, ("api",), 5, work=WORK, starts=MEAN * TENANTS)
    full = done.done / took
    print(
        f"10 ms of work: {free:.0f} a second without a limit, {full:.0f} behind one of 20: "
        f"{full / free:.2f}\n"
        f"concurrency 20: {len(done.runs)} runs, at once {most_at_once(done.runs)} of 20; "
        f"{served(done.runs)}"
    )
    everything(url, fresh(), seconds)


def everything(url: str, schema: str, seconds: float) -> None:
    """Two limits on each message, both changed on the way; claimers are killed and frozen."""
    with Queue(url, schema=schema) as queue:
        queue.limits["api"].set(concurrency=CONCURRENCY)
        queue.limits["pace"].set(rate=400, burst=40)
    changes = [
        Change(0.3, "api", {"concurrency": 10}),
        Change(0.4, "pace", {"rate": 200, "burst": 20}),
        Change(0.7, "api", {"concurrency": CONCURRENCY}),
    ]
    done, took = load(
        url,
        schema,
        seconds,
        50_000,
        ("api", "pace"),
        5,
        WORK,
        DROPPED,
        FROZEN,
        changes,
        MEAN * TENANTS,
    )
    times = {change.name + str(number): at for number, (at, change) in enumerate(done.changed)}
    lowered, slower, raised = (times[name] for name in ("api0", "pace1", "api2"))
    # What ran when the limit was lowered ends, or is taken back, within its lease and a second.
    lower = [run for run in done.runs if lowered + LEASE + 1 < run.began and run.ended < raised]
    fast = [run for run in done.runs if run.claimed < slower]
    slow = [run for run in done.runs if run.claimed > slower + 0.1]
    print(
        f"both, {DROPPED:.0%} of claims dropped, {FROZEN:.1%} frozen, limits changed: "
        f"{len(done.runs)} starts in {took:.1f} s, {done.stale} settled too late and refused, "
        f"{done.late} claims late without having been frozen\n"
        f"  at once {most_at_once(done.runs)} of 20, while lowered {most_at_once(lower)} of 10\n"
        f"  starts too many: {too_many_starts(fast, 400, 40)} at 400 a second, "
        f"{too_many_starts(slow, 200, 20)} at 200\n  {served(done.runs)}"
    )


if __name__ == "__main__":
    main()
