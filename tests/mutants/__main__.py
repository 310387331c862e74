"""``make mutants``: is every deliberate defect found, and how many seeds does it take?"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from laneway.dev.embedded import find_mariadb, pgbouncer_binary

from .hunt import MUTANTS, STUCK_TIMEOUT, Hunted, hunt, run
from .mutant import SOURCE, Mutant


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose names have one of these words")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    mutants = [m for m in MUTANTS if not given.words or any(w in m.name for w in given.words)]
    if find_mariadb() is None:
        _say("MariaDB is not installed here: its mutants are left out.")
        mutants = [mutant for mutant in mutants if mutant.engine != "mariadb"]
    if pgbouncer_binary() is None:
        _say("PgBouncer is not here: its mutants are left out.")
        mutants = [mutant for mutant in mutants if mutant.through is None]
    good = _control({mutant.engine for mutant in mutants}, given.first, given.seconds)
    survived = 0
    for number, hunted in enumerate(_hunt_all(mutants, seeds, given.seconds, given.jobs), 1):
        survived += not hunted.killed
        _say(f"{number:3} {_told(hunted)}")
    _say(f"{len(mutants)} mutants: {len(mutants) - survived} killed, {survived} survived")
    return 0 if good and not survived else 1


def _hunt_all(mutants: list[Mutant], seeds: range, seconds: float, jobs: int) -> Iterator[Hunted]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda mutant: hunt(mutant, seeds, seconds), mutants)


def _control(engines: set[str], seed: int, seconds: float) -> bool:
    """A checker that complains of everything would kill every mutant: the package itself lives."""
    good = True
    with tempfile.TemporaryDirectory(prefix="laneway-mutant-") as folder:
        shutil.copytree(SOURCE, Path(folder) / "laneway")
        for engine in sorted(engines):
            seen = run(Path(folder), engine, seed, seconds, STUCK_TIMEOUT)
            good = good and not seen
            _say(f"    {engine} without a defect: {seen or 'nothing is broken'}")
    return good


def _told(hunted: Hunted) -> str:
    mutant = hunted.mutant
    if not hunted.killed:
        return f"SURVIVED {mutant.name} ({hunted.seeds} seeds; the last one: {hunted.seen})"
    by = ", ".join(
        f"{rule} {hunted.seen[rule]}" for rule in sorted(mutant.kills & hunted.seen.keys())
    )
    return f"killed   {mutant.name}: {hunted.seeds} seed{'s' * (hunted.seeds > 1)} ({by})"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
