"""Runs chaos on a copy of the package with a defect, seed after seed, until the checker sees it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from . import claiming, elsewhere, publishing, settling, working
from .mutant import Mutant

MUTANTS = [
    *settling.MUTANTS,
    *claiming.MUTANTS,
    *publishing.MUTANTS,
    *working.MUTANTS,
    *elsewhere.MUTANTS,
]


PATIENCE = 60  # seconds, in which the package itself is done with the rest


class Hunted(NamedTuple):
    """``seeds`` runs were needed; ``seen`` is what the last one broke."""

    mutant: Mutant
    killed: bool
    seeds: int
    seen: dict[str, int]


def hunt(mutant: Mutant, seeds: range, seconds: float) -> Hunted:
    # What is only slow must not pass for stuck; for any other rule the rest need not be waited for.
    patience = PATIENCE if "stuck" in mutant.kills else 20
    seen: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-mutant-") as folder:
        mutant.write(Path(folder))
        for count, seed in enumerate(seeds, 1):
            seen = run(Path(folder), mutant.engine, seed, seconds, patience, mutant.faults)
            if mutant.kills & seen.keys():
                return Hunted(mutant, True, count, seen)
    return Hunted(mutant, False, len(seeds), seen)


def run(
    folder: Path, engine: str, seed: int, seconds: float, patience: float, faults: str | None = None
) -> dict[str, int]:
    """The rules that one run broke, each with how often."""
    command = [
        sys.executable, "-m", "penstock.cli", "chaos", "--json", "--engine", engine,
        "--seed", str(seed), "--seconds", str(seconds), "--patience", str(patience),
        *([] if faults is None else ["--faults", faults]),
    ]  # fmt: skip
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path}
    )
    if not done.stdout:
        raise RuntimeError(f"chaos did not run: {done.stderr}")
    verdict = json.loads(done.stdout)
    return {name: count for name, count in verdict["counts"].items() if count}
