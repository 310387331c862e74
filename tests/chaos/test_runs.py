"""Short runs on every database that is here, as a person starts them; and that nothing is left.

LANEWAY_CHAOS_LONG (`make chaos-faults`) adds those that take longer, or need root.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from laneway import Queue
from laneway.dev.chaos.nemesis import plan_faults
from laneway.dev.embedded import install_mariadb, pgbouncer_binary

MARK = f"LANEWAY_CHAOS_TEST_{os.getpid()}"
KINDS = ["kill", "stop", "term", "cut", "silent", "idle", "server", "snapshot", "lock"]
LONG = pytest.mark.skipif(
    "LANEWAY_CHAOS_LONG" not in os.environ, reason="half a minute each: make chaos-faults"
)


def _chaos(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "laneway.cli",
        "chaos",
        "--json",
        "--drain-timeout",
        "60",
        *arguments,
    ]
    marked = {**os.environ, MARK: "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=115, env=marked)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


_SQLITE = pytest.param("sqlite", marks=pytest.mark.repeats("the same faults on PostgreSQL"))


@pytest.mark.parametrize("engine", ["postgresql", _SQLITE])
def test_every_promise_holds(engine: str) -> None:
    code, verdict = _chaos("--engine", engine, "--seed", "15", "--seconds", "12")
    assert verdict["broken"] == {}
    assert code == 0
    figures = verdict["figures"]
    assert figures["completed"] > 50
    assert figures["expired"] > 0
    assert figures["faults"] > 5
    assert figures["samples"] > 10
    assert _left_behind() == []


@LONG
def test_every_promise_holds_on_mariadb() -> None:
    if not install_mariadb():
        pytest.skip("no mariadbd here, and it could not be installed")
    _, verdict = _chaos("--engine", "mariadb", "--seed", "3", "--seconds", "20")
    assert verdict["broken"] == {}
    assert verdict["kinds"]["server"] > 0


@LONG
@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
def test_a_full_disk(engine: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    _, verdict = _chaos(
        "--engine", engine, "--faults", "disk,kill", "--seed", "3", "--seconds", "15"
    )
    assert verdict["broken"] == {}
    assert verdict["kinds"]["disk"] > 0


@LONG
def test_a_replica_that_is_promoted() -> None:
    _, verdict = _chaos("--faults", "promote,kill,cut", "--seed", "3", "--seconds", "15")
    assert verdict["broken"] == {}
    assert verdict["kinds"]["promote"] == 1


@LONG
def test_through_pgbouncer() -> None:
    if pgbouncer_binary() is None:
        pytest.skip("no pgbouncer here, and it could not be fetched")
    _, verdict = _chaos("--through", "pgbouncer", "--seed", "3", "--seconds", "20")
    assert verdict["broken"] == {}
    assert verdict["through"] == "pgbouncer"


@LONG
def test_through_a_pgbouncer_that_nobody_announced() -> None:
    if pgbouncer_binary() is None:
        pytest.skip("no pgbouncer here, and it could not be fetched")
    _, verdict = _chaos("--through", "pgbouncer-unannounced", "--seed", "3", "--seconds", "20")
    assert verdict["broken"] == {}


def _tables(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute("select name from sqlite_master where name not like 'sqlite_%'")
        return [name for (name,) in names]


@pytest.mark.repeats("chaos on its own server here")
def test_a_given_database_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "given.db"
    _, verdict = _chaos("--url", f"sqlite:///{file}", "--seed", "4", "--seconds", "3")
    assert verdict["broken"] == {}
    assert not {"server", "cut", "lock", "snapshot"} & verdict["kinds"].keys()
    assert _tables(file) == []


def test_a_run_that_is_stopped_cleans_up(tmp_path: Path) -> None:
    file = tmp_path / "given.db"
    command = [sys.executable, "-m", "laneway.cli", "chaos", "--url", f"sqlite:///{file}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (file.exists() and _tables(file)) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert _tables(file) == []


def test_somebody_elses_run_is_not_touched(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'given.db'}"
    with Queue(url, schema="laneway_chaos") as queue:
        queue.install()
        command = [sys.executable, "-m", "laneway.cli", "chaos", "--url", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "laneway_chaos" in done.stderr
        assert queue.schema_version() > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--engine", "cobol"], "cobol"),
        (["--faults", "flood"], "flood"),
        (["--engine", "sqlite", "--faults", "server"], "server"),
        (["--engine", "sqlite", "--through", "pgbouncer"], "pgbouncer"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], says: str) -> None:
    command = [sys.executable, "-m", "laneway.cli", "chaos", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_seed_decides_every_fault() -> None:
    assert plan_faults(7, 60, KINDS) == plan_faults(7, 60, KINDS)
    assert plan_faults(7, 60, KINDS) != plan_faults(8, 60, KINDS)
    assert {fault.kind for fault in plan_faults(7, 15, KINDS)} == set(KINDS)


def _left_behind() -> list[str]:
    """Processes that carry our mark: an environment is inherited, however they were started."""
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error):
            if MARK in process.environ():
                found.append(process.info["name"])
    return found
