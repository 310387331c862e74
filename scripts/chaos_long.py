"""Runs chaos many times, one line of JSON per run in a log; and prints the log as a table.

python scripts/chaos_long.py run chaos.jsonl --engine postgresql --first 1 --count 60 --seconds 60
python scripts/chaos_long.py table chaos.jsonl
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

Verdict = dict[str, Any]

RULES = {
    "lost": ("lost", "stuck"),
    "unexpected": ("unexpected", "mixed_up"),
    "unexplained duplicates": ("unexplained_duplicates", "two_states"),
    "over limit": ("over_limit", "sampled"),
    "rate excess": ("rate_excess",),
    "stale writes accepted": ("stale_accepted",),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run_parser = verbs.add_parser("run")
    run_parser.add_argument("log", type=Path)
    run_parser.add_argument("--engine", default="postgresql")
    run_parser.add_argument("--first", type=int, default=1)
    run_parser.add_argument("--count", type=int, default=1)
    run_parser.add_argument("--seconds", type=float, default=60)
    run_parser.add_argument("--faults")
    run_parser.add_argument("--through")
    verbs.add_parser("table").add_argument("log", type=Path)
    given = parser.parse_args()
    if given.verb == "table":
        print("\n".join(table(read(given.log))))
        return 0
    return run(given)


def run(given: argparse.Namespace) -> int:
    bad = 0
    for seed in range(given.first, given.first + given.count):
        verdict = run_once(given, seed)
        bad += not verdict["good"]
        with given.log.open("a") as log:
            log.write(json.dumps(verdict) + "\n")
        result = "good" if verdict["good"] else f"BROKEN {verdict['broken']}"
        print(f"{given.engine} {seed}: {verdict['figures']['starts']} starts, {result}", flush=True)
    return 1 if bad else 0


def run_once(given: argparse.Namespace, seed: int) -> Verdict:
    """The ledgers of a run with violations are kept beside the log."""
    kept = given.log.with_suffix("") / f"{given.engine}-{seed}"
    command = [
        sys.executable, "-m", "laneway.cli", "chaos", "--json", "--engine", given.engine,
        "--seed", str(seed), "--seconds", str(given.seconds), "--keep", str(kept),
    ]  # fmt: skip
    for name in ("faults", "through"):
        if value := getattr(given, name):
            command += [f"--{name}", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    verdict: Verdict = json.loads(done.stdout)
    if verdict["good"]:
        shutil.rmtree(kept, ignore_errors=True)
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), **verdict}


def read(log: Path) -> list[Verdict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def table(verdicts: list[Verdict]) -> list[str]:
    """A column per database, a row per figure."""
    groups = [list(group) for _, group in groupby(sorted(verdicts, key=_target), key=_target)]
    rows = [["", *(_target(group[0])[0] for group in groups)]]
    columns = [_column(group) for group in groups]
    rows += [[name, *(str(column[name]) for column in columns)] for name in columns[0]]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]


def _target(verdict: Verdict) -> tuple[str, str]:
    extras = [verdict[name] for name in ("through", "faults") if verdict[name]]
    return " ".join([verdict["server"], *extras]), verdict["engine"]


def _column(group: list[Verdict]) -> dict[str, object]:
    starts = sum(verdict["figures"]["starts"] for verdict in group)
    kinds: Counter[str] = Counter()
    for verdict in group:
        kinds.update(verdict["kinds"])
    broken = {
        name: sum(verdict["counts"][rule] for verdict in group for rule in rules)
        for name, rules in RULES.items()
    }
    every = sum(sum(verdict["counts"].values()) for verdict in group)
    return {
        "runs": f"{len(group)} of {group[0]['seconds']:g} s",
        "published": f"{_sum(group, 'acknowledged'):,}",
        "of unknown outcome": f"{_sum(group, 'unknown'):,}",
        "starts": f"{starts:,}",
        "leases that expired": f"{_sum(group, 'expired'):,}",
        "stale writes refused": f"{_sum(group, 'stale_refused'):,}",
        "faults": f"{_sum(group, 'faults'):,}",
        "kinds of faults": ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())),
        **broken,
        "any rule broken": every,
        "bound per start": f"< {3 / max(1, starts):.1e}" if not every else "",
        **{name: _recovery(group, key) for name, key in RECOVERY.items()},
    }


RECOVERY = {
    "killed → leases expired: median / p99 / max": "returned",
    "killed → claimed again: median / p99 / max": "killed",
    "server back → first claim: median / p99 / max": "server",
    "resumed process still working: median / p99 / max": "zombie",
}


def _recovery(group: list[Verdict], key: str) -> str:
    times = sorted(time for verdict in group for time in verdict["recovery"][key]["times"])
    if not times:
        return ""
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
    target = group[0]["recovery"][key]["target"]
    return f"{p50:.2f} / {p99:.2f} / {times[-1]:.2f} s, {len(times)} times (target {target:.1f} s)"


def _sum(group: list[Verdict], name: str) -> int:
    return sum(int(verdict["figures"][name]) for verdict in group)


if __name__ == "__main__":
    sys.exit(main())
