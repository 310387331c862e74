"""The verdict for people."""

from typing import Any

from .checker import RULES
from .run import replay_line

RECOVERY = {
    "returned": "from a kill to the end of its leases",
    "killed": "from a kill to the next claim",
    "server": "from the server's return to a claim",
    "zombie": "a resumed process beside the next",
}


def tell(verdict: dict[str, Any]) -> str:
    figures = verdict["figures"]
    lines = [
        f"{verdict['engine']}, seed {verdict['seed']}, {verdict['seconds']:g} s: "
        f"{figures['faults']} faults, {figures['samples']} snapshots",
        "  " + ", ".join(f"{kind} {count}" for kind, count in verdict["kinds"].items()),
        f"  published: {figures['acknowledged']:,} acknowledged, {figures['unknown']} unknown, "
        f"{figures['rolled_back']} undone",
        f"  worked on: {figures['starts']:,} starts, {figures['duplicated']} messages again",
        f"  ended: {figures['completed']:,} completed, {figures['dead']} dead, "
        f"{figures['expired']} leases ran out, {figures['stale_refused']} stale writes refused",
    ]
    lines += [f"  {text}" for text in _recovery(verdict["recovery"])]
    for rule in RULES:
        count = verdict["counts"][rule.__name__]
        says = (rule.__doc__ or "").partition("\n")[0]
        lines.append(f"{'BAD ' if count else 'ok  '} {rule.__name__}: {count}  ({says})")
        lines += [f"       {text}" for text in verdict["broken"].get(rule.__name__, [])]
    if verdict["good"]:
        lines.append(
            "Good: nothing was broken. That bounds the chance of a violation per start "
            f"below {verdict['bound']:.1e} (3/n, 95 %), under these faults."
        )
    else:
        lines.append("BROKEN.")
    return "\n".join([*lines, f"Replay: {replay_line(verdict)}"])


def _recovery(figures: dict[str, Any]) -> list[str]:
    return [
        f"{RECOVERY[name]}: {found['count']} times, median {found['median']:.2f} s, "
        f"p99 {found['p99']:.2f} s, most {found['most']:.2f} s (we aim at {found['target']:.2f} s)"
        for name, found in figures.items()
        if found["count"]
    ]
