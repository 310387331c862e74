"""Single claimers where a commit takes 5 ms: `python -m benchmarks.slow_commits`.

Managed servers and synchronous replicas take milliseconds for a commit. Eight processes claim and
complete one message at a time; whoever holds a lock until its commit is on disk is waited for by
all others. Laneway beside a bare table, in turn; the median of the rounds counts.
"""

import argparse
import os
from statistics import median

from .bench import SETTINGS, Bench, running, say
from .drain import drain
from .report import Table, show, verdict

CLIENTS = 8
TARGET = 0.9
SLOW = SETTINGS | {"commit_delay": 5_000, "commit_siblings": 0}
"""Every commit waits 5 ms before its flush, also if it is the only one."""


def measure(bench: Bench, channels: tuple[int, ...], messages: int, rounds: int) -> Table:
    columns = ["channels", "ours msg/s", "bare msg/s", "ratio", "target", ""]
    table = Table(f"{CLIENTS} claimers, one message each, commits of 5 ms", columns)
    for each in channels:
        rates: dict[str, list[float]] = {"ours": [], "bare": []}
        for number in range(rounds):
            say(f"{each:,} channels, round {number + 1}")
            for side, done in rates.items():
                done.append(drain(bench, side, each, messages, 1, CLIENTS).rate)
        ours, bare = median(rates["ours"]), median(rates["bare"])
        table.add(each, ours, bare, ours / bare, TARGET, verdict(ours / bare, TARGET))
    load = os.getloadavg()
    table.notes.append(f"load at the end: {load[0]:.1f}, {load[1]:.1f}, {load[2]:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with running(SLOW) as bench:
        table = measure(bench, (1, 100), options.messages, options.rounds)
    show([table], as_json=options.json)


if __name__ == "__main__":
    main()
