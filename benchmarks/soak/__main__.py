"""`python -m benchmarks.soak --minutes 10 --rate 200 --channels 10000`; exits with 1 if something
was lost, with 2 if a line is not flat."""

import argparse
import sys

from laneway.dev.embedded import EmbeddedPostgres

from .run import run
from .terms import Terms
from .verdict import MB, Line

HEAD = (
    "|  min | snapshot | published/s | done/s | waiting | p99 pick-up ms | tables MB | indexes MB "
    "| history MB | dead rows | worker MB |"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=200, help="messages a second, without bursts")
    parser.add_argument("--channels", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    terms = Terms(options.minutes, options.rate, options.channels, options.workers)
    print(HEAD)
    print("|" + "---:|" * (HEAD.count("|") - 1))
    with EmbeddedPostgres() as server:
        result = run(server.create_database("soak"), terms, show)
    print(f"\n{result.published:,} messages published.")
    for text in result.losses:
        print(f"LOST OR TWICE: {text}")
    for text in result.not_flat:
        print(f"NOT FLAT: {text}")
    good = not result.losses and not result.not_flat
    print("Nothing lost, nothing twice, all lines flat." if good else "The verdict is bad.")
    return 1 if result.losses else 2 if result.not_flat else 0


def show(line: Line) -> None:
    cells = (
        f"{line.second / 60:.1f}",
        "held" if line.snapshot else "",
        f"{line.published:,.0f}",
        f"{line.done:,.0f}",
        f"{line.waiting:,}",
        f"{line.late * 1000:,.0f}",
        f"{line.tables / MB:.1f}",
        f"{line.indexes / MB:.1f}",
        f"{line.history / MB:.1f}",
        f"{line.dead_rows:,}",
        f"{line.memory / MB:.0f}",
    )
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
