"""What a lone message costs: `python -m benchmarks.lone`.

One connection, the queue empty before each message, and claims of an empty queue. Laneway beside a
bare table; with ``--peers`` also beside pgmq and PgQueuer, in environments of their own under
.cache/peers. The sides take turns; each figure is the median of the rounds. Processor time of the
server's backends and of the client, microseconds an operation; nothing waits for a disk.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from .bench import SETTINGS, Bench, running, say
from .lone_sides import OPERATIONS
from .peers import ROOT, environment
from .report import Table, show

PEERS = ("pgmq", "pgqueuer")
_MESSAGE = OPERATIONS[:3]

Times = dict[str, dict[str, float]]
"""By who spends it (server, client) and operation."""


def measure(bench: Bench, sides: Sequence[str], messages: int, rounds: int) -> list[Table]:
    pythons = {name: _python(name) for name in sides}
    runs: dict[str, list[Times]] = {name: [] for name in sides}
    for number in range(rounds):
        for name, python in pythons.items():
            say(f"round {number + 1}: {name}")
            runs[name].append(_run(bench, python, name, messages))
    load = os.getloadavg()
    tables = [_table(who, runs) for who in ("server", "client")]
    tables[-1].notes.append(f"load at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}")
    return tables


def _python(name: str) -> Path:
    own = name in ("bare", "laneway")
    return environment("laneway" if own else name, ROOT / ".cache" / "peers").python


def _run(bench: Bench, python: Path, name: str, messages: int) -> Times:
    with bench.database(installed=False) as url:
        words = [str(python), "-m", "benchmarks.lone_sides", name, url, str(messages)]
        done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    times: Times = json.loads(done.stdout.splitlines()[-1])
    return times


def _table(who: str, runs: dict[str, list[Times]]) -> Table:
    base = "bare table" if "pgmq" not in runs else "pgmq"
    columns = ["side", *_MESSAGE, "sum", f"to {base}", "empty claim", f"to {base} "]
    table = Table(f"A lone message: processor time of the {who}, µs an operation", columns)
    against = _medians(runs["pgmq" if "pgmq" in runs else "bare"], who)
    for name, done in runs.items():
        each = _medians(done, who)
        table.add(
            name,
            *(each[operation] for operation in _MESSAGE),
            _sum(each),
            _sum(each) / _sum(against),
            each["empty claim"],
            each["empty claim"] / against["empty claim"],
        )
    return table


def _medians(runs: Sequence[Times], who: str) -> dict[str, float]:
    return {operation: median(run[who][operation] for run in runs) for operation in OPERATIONS}


def _sum(each: dict[str, float]) -> float:
    return sum(each[operation] for operation in _MESSAGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="beside pgmq and PgQueuer")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    sides = ["bare", "laneway", *(PEERS if options.peers else ())]
    with running(SETTINGS | {"fsync": False, "synchronous_commit": "off"}) as bench:
        tables = measure(bench, sides, options.messages, options.rounds)
    show(tables, as_json=options.json)


if __name__ == "__main__":
    main()
