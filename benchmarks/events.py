"""What events cost: publish, claim and complete with nobody listening, and with a reader, against
the same functions without a word about events: `python -m benchmarks.events`."""

import argparse
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

import psycopg

from laneway import Queue
from laneway.client import Events
from laneway.engines.postgresql.schema import install_sql

from .bench import PAYLOAD, SETTINGS, Bench, running, say
from .report import Table, show

LEAST = 0.9
SIDES = ("off", "nobody listens", "one reader")
_ASK = r"exists \(select from listener l where l\.until > \w+\)"
_HOOK = re.compile(rf"( *)if [^\n]*{_ASK} then\n.*?\n\1end if;\n", re.DOTALL)
_FUNCTION = re.compile(r"create or replace function .*?\n\$\$;\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int = 15
    singles: int = 200
    batches: int = 20
    batch: int = 100


def without_events() -> str:
    """The functions that tell, without that."""
    told = [text for text in _FUNCTION.findall(install_sql()) if re.search(_ASK, text)]
    return "\n".join(re.sub(_ASK, "false", _HOOK.sub("", text)) for text in told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    # Waiting for the disk would hide what is asked for.
    with running({**SETTINGS, "synchronous_commit": "off"}) as bench:
        table = measure(bench, Size())
    show([table], as_json=as_json)


def measure(bench: Bench, size: Size) -> Table:
    columns = ["what", *(f"{side} µs" for side in SIDES), "nobody / off", "reader / off", ""]
    table = Table("Events: microseconds a message; rate against functions without events", columns)
    with ExitStack() as stack:
        queues = {side: _opened(stack, bench, side) for side in SIDES}
        reader = queues["one reader"].events(idle=timedelta(0))
        reader.open()
        stack.callback(reader.close)
        for name, work in _works(size).items():
            say(name)
            spent: dict[str, list[float]] = {side: [] for side in SIDES}
            for _ in range(size.rounds):
                for side, queue in queues.items():
                    spent[side].append(work(queue))
                _read(reader)
            cost = {side: median(values) * 1e6 for side, values in spent.items()}
            quiet, heard = (cost["off"] / cost[side] for side in SIDES[1:])
            table.add(name, *cost.values(), quiet, heard, "ok" if quiet >= LEAST else "below")
    table.notes.append(f"Target: nobody / off at least {LEAST}.")
    return table


def _opened(stack: ExitStack, bench: Bench, side: str) -> Queue:
    url = stack.enter_context(bench.database())
    if side == "off":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(without_events().encode())
    return stack.enter_context(Queue(url, group_commit=False, upkeep_every=None))


def _works(size: Size) -> dict[str, Callable[[Queue], float]]:
    """Each answers seconds a message, and leaves the queue empty."""

    def publish_one(queue: Queue) -> float:
        began = time.perf_counter()
        for _ in range(size.singles):
            queue.publish(PAYLOAD)
        took = time.perf_counter() - began
        queue.complete(queue.claim(size.singles))
        return took / size.singles

    def publish_batch(queue: Queue) -> float:
        began = time.perf_counter()
        for _ in range(size.batches):
            queue.publish_many([PAYLOAD] * size.batch)
        took = time.perf_counter() - began
        queue.complete(queue.claim(size.batches * size.batch))
        return took / (size.batches * size.batch)

    def drain(limit: int, count: int) -> Callable[[Queue], float]:
        def run(queue: Queue) -> float:
            queue.publish_many([PAYLOAD] * limit * count)
            began = time.perf_counter()
            while messages := queue.claim(limit):
                queue.complete(messages)
            return (time.perf_counter() - began) / (limit * count)

        return run

    return {
        "publish one": publish_one,
        f"publish {size.batch}": publish_batch,
        "claim and complete one": drain(1, size.singles),
        f"claim and complete {size.batch}": drain(size.batch, size.batches),
    }


def _read(reader: Events) -> None:
    """Empties the mailbox, outside of what is measured."""
    for _ in reader:
        pass


if __name__ == "__main__":
    main()
