"""Short runs on every database that is here, as a person starts them; and that nothing is left."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.chaos.nemesis import decide

KINDS = ["kill", "stop", "term", "cut", "server", "snapshot", "lock"]


def _chaos(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "penstock.cli", "chaos", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=115)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
def test_every_promise_holds(engine: str) -> None:
    before = _processes_of_runs()
    code, verdict = _chaos("--engine", engine, "--seed", "15", "--seconds", "12")
    assert verdict["broken"] == {}
    assert code == 0
    figures = verdict["figures"]
    assert figures["completed"] > 50
    assert figures["expired"] > 0
    assert figures["faults"] > 5
    assert figures["samples"] > 10
    assert _processes_of_runs() <= before


def test_a_given_database_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "given.db"
    _, verdict = _chaos("--url", f"sqlite:///{file}", "--seed", "4", "--seconds", "3")
    assert verdict["broken"] == {}
    with closing(sqlite3.connect(file)) as connection:
        left = connection.execute("select name from sqlite_master where name not like 'sqlite_%'")
        assert left.fetchall() == []


def test_a_seed_decides_every_fault() -> None:
    assert decide(7, 60, KINDS) == decide(7, 60, KINDS)
    assert decide(7, 60, KINDS) != decide(8, 60, KINDS)
    assert {fault.kind for fault in decide(7, 15, KINDS)} == set(KINDS)


def test_an_unknown_engine_is_refused() -> None:
    command = [sys.executable, "-m", "penstock.cli", "chaos", "--engine", "cobol"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "cobol" in done.stderr


def _processes_of_runs() -> set[int]:
    return {
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any("penstock.chaos." in word for word in process.info["cmdline"] or [])
    }
