"""The entry point of ``laneway chaos``.

The verdict as text.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Any

from laneway import LanewayError
from laneway.dev.embedded import EmbeddedServerError

from .checker import RULES
from .child import silence_logging
from .run import replay_line, run

RECOVERY = {
    "returned": "from a kill to the expiry of its leases",
    "killed": "from a kill to the next claim",
    "server": "from the server's return to the first claim",
    "zombie": "a resumed process still working after its lease expired",
}


def format_verdict(verdict: dict[str, Any]) -> str:
    figures = verdict["figures"]
    lines = [
        f"{verdict['engine']}, seed {verdict['seed']}, {verdict['seconds']:g} s: "
        f"{figures['faults']} faults, {figures['samples']} snapshots",
        "  " + ", ".join(f"{kind} {count}" for kind, count in verdict["kinds"].items()),
        f"  published: {figures['acknowledged']:,} acknowledged, {figures['unknown']} unknown, "
        f"{figures['rolled_back']} rolled back",
        f"  handled: {figures['starts']:,} starts, {figures['duplicated']} messages more than once",
        f"  ended: {figures['completed']:,} completed, {figures['dead']} dead, "
        f"{figures['expired']} leases expired, {figures['stale_refused']} stale writes refused",
    ]
    lines += [f"  {text}" for text in _recovery(verdict["recovery"])]
    for rule in RULES:
        count = verdict["counts"][rule.__name__]
        says = (rule.__doc__ or "").partition("\n")[0]
        lines.append(f"{'BAD ' if count else 'ok  '} {rule.__name__}: {count}  ({says})")
        lines += [f"       {text}" for text in verdict["broken"].get(rule.__name__, [])]
    if verdict["good"]:
        lines.append(
            "Good: no rule was broken. Under these faults the chance of a violation per start is "
            f"below {verdict['bound']:.1e} (3/n, at 95 % confidence)."
        )
    else:
        lines.append("BROKEN: see the rules marked BAD.")
    return "\n".join([*lines, f"Replay: {replay_line(verdict)}"])


def _recovery(figures: dict[str, Any]) -> list[str]:
    return [
        f"{RECOVERY[name]}: {found['count']} times, median {found['median']:.2f} s, "
        f"p99 {found['p99']:.2f} s, max {found['most']:.2f} s (target {found['target']:.2f} s)"
        for name, found in figures.items()
        if found["count"]
    ]


def main(
    engine: str,
    seed: int,
    seconds: float,
    url: str | None,
    as_json: bool,
    keep: Path | None,
    drain_timeout: float,
    faults: list[str] | None,
    through: str | None,
    by_kind: bool,
) -> int:
    """Prints the verdict; returns the exit code, 0 if no rule was broken."""
    silence_logging()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up, as Ctrl-C does
    try:
        verdict = run(engine, seed, seconds, url, keep, drain_timeout, faults, through, by_kind)
    except (EmbeddedServerError, LanewayError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nStopped; everything that was started or created has been removed.", file=sys.stderr
        )
        return 130
    print(json.dumps(verdict) if as_json else format_verdict(verdict))
    return 0 if verdict["good"] else 1
