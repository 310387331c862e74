"""Runs chaos on a copy of the package with a defect, seed after seed, until the checker sees it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from . import (
    claim,
    figures,
    flows,
    keys,
    kinds,
    limits,
    operators,
    other_engines,
    publish,
    results,
    settle,
    wires,
    worker,
)
from .mutant import Mutant

MUTANTS = [
    *settle.MUTANTS,
    *claim.MUTANTS,
    *publish.MUTANTS,
    *keys.MUTANTS,
    *worker.MUTANTS,
    *other_engines.MUTANTS,
    *figures.MUTANTS,
    *flows.MUTANTS,
    *operators.MUTANTS,
    *results.MUTANTS,
    *kinds.MUTANTS,
    *limits.MUTANTS,
    *wires.MUTANTS,
]


PROJECT = Path(__file__).parents[2]
STUCK_TIMEOUT = 60  # seconds, in which the package itself is done with the rest


class DidNotRun(Exception):
    """Dying of anything else than the broken rule would be an accident."""


class Hunted(NamedTuple):
    """``seeds`` runs were needed; ``seen`` is what the last one broke."""

    mutant: Mutant
    killed: bool
    seeds: int
    seen: dict[str, int]


def hunt(mutant: Mutant, seeds: range, seconds: float) -> Hunted:
    # What is only slow must not pass for stuck; for any other rule the rest need not be waited for.
    timeout = STUCK_TIMEOUT if "stuck" in mutant.kills else 20
    seen: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="laneway-mutant-") as folder:
        mutant.write(Path(folder))
        for count, seed in enumerate(seeds, 1):
            try:
                seen = _seen(mutant, Path(folder), seed, seconds, timeout)
            except DidNotRun as error:
                seen = {f"did not run: {str(error).strip().splitlines()[-1]}": 1}
            if mutant.kills & seen.keys():
                return Hunted(mutant, True, count, seen)
    return Hunted(mutant, False, len(seeds), seen)


def _seen(
    mutant: Mutant, folder: Path, seed: int, seconds: float, timeout: float
) -> dict[str, int]:
    if mutant.test:
        return run_test(folder, mutant.test)
    if mutant.case:
        return run_case(folder, mutant.engine, mutant.case)
    terms = mutant.faults, mutant.by_kind, mutant.through
    return run(folder, mutant.engine, seed, seconds, timeout, *terms)


def run(
    folder: Path,
    engine: str,
    seed: int,
    seconds: float,
    timeout: float,
    faults: str | None = None,
    by_kind: bool = False,
    through: str | None = None,
) -> dict[str, int]:
    """The rules that one run broke, each with how often."""
    command = [
        sys.executable, "-m", "laneway.cli", "chaos", "--json", "--engine", engine,
        "--seed", str(seed), "--seconds", str(seconds), "--drain-timeout", str(timeout),
        *([] if faults is None else ["--faults", faults]),
        *(["--by-kind"] if by_kind else []),
        *([] if through is None else ["--through", through]),
    ]  # fmt: skip
    verdict = _answer(folder, command)
    return {name: count for name, count in verdict["counts"].items() if count}


_CASE = """
import json, sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from laneway.conformance import Harness, Target, all_cases
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres

@contextmanager
def file():
    yield SimpleNamespace(create_database=lambda name: f"sqlite:///{Path.cwd()}/{name}.db")

engine, name = sys.argv[1:]
server, client = {
    "postgresql": (EmbeddedPostgres, "sync psycopg"),
    "mariadb": (EmbeddedMariaDB, "sync pymysql"),
    "sqlite": (file, "sync sqlite3"),
}[engine]
(case,) = (case for case in all_cases() if case.name == name)
broken = 0
with server() as running, Harness(Target(running.create_database("cases"), client)) as harness:
    for _ in range(5):
        try:
            harness.run(case)
        except (AssertionError, ValueError):  # also more than one where one is taken apart
            broken += 1
print(json.dumps(broken))
"""


def run_case(folder: Path, engine: str, case: str) -> dict[str, int]:
    """How often a case of the conformance suite was broken, of five times."""
    broken = _answer(folder, [sys.executable, "-c", _CASE, engine, case])
    return {"conformance": broken} if broken else {}


def run_test(folder: Path, test: str) -> dict[str, int]:
    """Whether a test fails."""
    done = _run(folder, [sys.executable, "-m", "pytest", "-q", "-n", "0", test], PROJECT)
    if done.returncode > 1:
        raise DidNotRun(done.stdout)
    return {"test": 1} if done.returncode else {}


def _run(folder: Path, command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def _answer(folder: Path, command: list[str]) -> Any:
    done = _run(folder, command, folder)
    if not done.stdout:
        raise DidNotRun(done.stderr)
    return json.loads(done.stdout)
