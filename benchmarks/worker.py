"""The worker: throughput beside a bare table, pick-up, memory. `python -m benchmarks.worker`.

The handler does nothing, in one process, with history rows on both sides. The bare side is a loop
of its own on one psycopg connection: batch UPDATE with SKIP LOCKED, batch DELETE, no handler.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, NamedTuple

import psutil

from laneway import AsyncQueue, NewMessage, Worker

from .bench import CHUNK, PAYLOAD, Bench, running, say, tidy
from .counters import Counters, read
from .report import Table, show, verdict
from .sides import Bare

TARGET = 0.4
LATENCY_TARGETS = {50: 4.0, 99: 25.0}  # milliseconds
DRIVERS = {"psycopg": "postgresql://", "asyncpg": "postgresql+asyncpg://"}


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int = 3
    messages: int = 50_000
    channels: tuple[int, ...] = (1, 1000)
    bare_batches: tuple[int, ...] = (100, 500)
    pick_ups: int = 300
    long_run: int = 200_000


QUICK = Size(rounds=1, messages=20_000, bare_batches=(100,), pick_ups=100, long_run=50_000)


class Run(NamedTuple):
    rate: float
    cost: Counters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, under a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--long-run", type=int, help="messages of the memory test")
    parser.add_argument("--only", choices=["throughput", "pickup", "memory"], help="one part")
    options = parser.parse_args()
    size = QUICK if options.quick else Size()
    parts: dict[str, Callable[[Bench], Table]] = {
        "throughput": lambda bench: throughput(bench, size),
        "pickup": lambda bench: pick_up(bench, size.pick_ups),
        "memory": lambda bench: memory(bench, options.long_run or size.long_run),
    }
    with running() as bench:
        wanted = [part for name, part in parts.items() if options.only in (None, name)]
        show([part(bench) for part in wanted], as_json=options.json)


def throughput(bench: Bench, size: Size) -> Table:
    columns = ["channels", "side", "msg/s", "python µs", "server µs", "ratio", "target", ""]
    table = Table("Worker, no-op async handler, one process / bare loop", columns)
    for channels in size.channels:
        say(f"{channels:,} channels")
        runs: dict[str, list[Run]] = {}
        for _ in range(size.rounds):
            for name, measure in _sides(bench, channels, size).items():
                runs.setdefault(name, []).append(measure())
        middle = {name: _middle(done) for name, done in runs.items()}
        bare = middle[f"bare, batch {size.bare_batches[0]}"].rate
        for name, run in middle.items():
            ratio = run.rate / bare
            target = TARGET if name.startswith("worker") else None
            cost = (run.cost.python, run.cost.server)
            table.add(channels, name, run.rate, *cost, ratio, target, verdict(ratio, target))
    return table


def _sides(bench: Bench, channels: int, size: Size) -> dict[str, Callable[[], Run]]:
    sides: dict[str, Callable[[], Run]] = {}
    for driver in DRIVERS:
        for loop in loops():
            sides[f"worker, {driver}, {loop}"] = _worker_side(bench, channels, size, driver, loop)
    for batch in size.bare_batches:
        sides[f"bare, batch {batch}"] = _bare_side(bench, channels, size, batch)
    return sides


def loops() -> list[str]:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return ["asyncio"]
    return ["asyncio", "uvloop"]


def run_in(loop: str, work: Any) -> Any:
    if loop == "uvloop":
        import uvloop

        return uvloop.run(work)
    return asyncio.run(work)


def _worker_side(
    bench: Bench, channels: int, size: Size, driver: str, loop: str
) -> Callable[[], Run]:
    def measure() -> Run:
        with bench.database() as url:
            run_in(loop, publish(url, channels, size.messages))
            tidy(url)
            address = url.replace("postgresql://", DRIVERS[driver])
            before, begun = read(bench), time.perf_counter()
            done = run_in(loop, work_off(address, size.messages))
            seconds = time.perf_counter() - begun
            assert done == size.messages
            return Run(done / seconds, read(bench).since(before).per(done))

    return measure


def _bare_side(bench: Bench, channels: int, size: Size, batch: int) -> Callable[[], Run]:
    def measure() -> Run:
        with bench.database(installed=False) as url, Bare(url) as bare:
            bare.create()
            for start in range(0, size.messages, CHUNK):
                bare.publish(bare.drafts(_names(channels, start)))
            tidy(url)
            bare.warm()
            before, begun = read(bench), time.perf_counter()
            done = bare.drain(batch).messages
            seconds = time.perf_counter() - begun
            assert done == size.messages
            return Run(done / seconds, read(bench).since(before).per(done))

    return measure


async def publish(url: str, channels: int, messages: int) -> None:
    async with AsyncQueue(url) as queue:
        for start in range(0, messages, CHUNK):
            names = _names(channels, start)
            await queue.publish_many([NewMessage(PAYLOAD, name) for name in names])


async def work_off(url: str, messages: int) -> int:
    """Starts a worker, lets it do so many messages, and stops it: all of it counts."""
    worker = Worker(AsyncQueue(url), max_messages=messages)
    done = 0

    @worker.default_handler
    async def handle(payload: bytes) -> None:
        nonlocal done
        done += 1

    await worker.serve()
    return done


def pick_up(bench: Bench, times: int) -> Table:
    columns = ["driver", "messages", "p50 ms", "p99 ms", "publish itself, p50", "targets", ""]
    table = Table("Pick-up: from the call of publish to the handler, the worker idle", columns)
    for driver in DRIVERS:
        say(f"pick-up, {driver}")
        with bench.database() as url:
            address = url.replace("postgresql://", DRIVERS[driver])
            waits, calls = asyncio.run(_waits(url, address, times))
        p50, p99 = median(waits), quantiles(waits, n=100)[98]
        good = p50 <= LATENCY_TARGETS[50] and p99 <= LATENCY_TARGETS[99]
        targets = " and ".join(f"{most:.0f}" for most in LATENCY_TARGETS.values())
        table.add(driver, times, p50, p99, median(calls), targets, "ok" if good else "above")
    return table


async def _waits(publisher_url: str, url: str, times: int) -> tuple[list[float], list[float]]:
    worker = Worker(AsyncQueue(url))
    arrived: asyncio.Queue[float] = asyncio.Queue()

    @worker.default_handler
    async def handle(payload: bytes) -> None:
        arrived.put_nowait(time.perf_counter())

    waits, calls = [], []
    async with AsyncQueue(publisher_url) as queue:
        serving = asyncio.create_task(worker.serve())
        await asyncio.sleep(3)
        for _ in range(times):
            await asyncio.sleep(random.uniform(0.02, 0.2))
            begun = time.perf_counter()
            await queue.publish(PAYLOAD)
            calls.append(1000 * (time.perf_counter() - begun))
            waits.append(1000 * (await arrived.get() - begun))
        worker.stop()
        await serving
    return waits, calls


def memory(bench: Bench, messages: int) -> Table:
    table = Table("Memory of the worker's process", ["messages", "MB", "growth since a tenth"])
    say(f"memory over {messages:,} messages")
    with bench.database() as url:
        marks = asyncio.run(_sizes(url, messages))
    first = marks[0][1]
    for done, size in marks:
        table.add(done, size, size / first)
    return table


async def _sizes(url: str, messages: int) -> list[tuple[int, float]]:
    """The backlog is filled up in tenths, so that the database does not grow instead."""
    marks = []
    for tenth in range(1, 11):
        await publish(url, 100, messages // 10)
        await work_off(url, messages // 10)
        size = psutil.Process().memory_info().rss / 2**20
        marks.append((tenth * (messages // 10), size))
    return marks


def _names(channels: int, start: int) -> list[str]:
    return [f"c{number % channels}" for number in range(start, start + CHUNK)]


def _middle(runs: list[Run]) -> Run:
    cost = Counters(*(median(values) for values in zip(*(run.cost for run in runs), strict=True)))
    return Run(median(run.rate for run in runs), cost)


if __name__ == "__main__":
    sys.exit(main())
