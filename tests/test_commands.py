"""The demo and the command line, as a person runs them."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres
from laneway.engines.postgresql.schema import migrations

LATEST = migrations()[-1].number


def _run(
    *arguments: str, url: str | None = None, **more: str
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **({} if url is None else {"DATABASE_URL": url}), **more}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=400)


def test_the_demo_ends_in_a_good_verdict_and_a_report(tmp_path: Path) -> None:
    done = _run("laneway.dev.demo", TMPDIR=str(tmp_path))
    _check_verdict(done)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("The report over this history"), done.stdout
    page = Path(last.rpartition(": ")[2]).read_text()
    assert "rows are real" in page and "made up" in page
    assert "this message can never be done" in page, "what the failing message said"


@pytest.mark.skipif(
    not os.environ.get("LANEWAY_SPARK_LONG"), reason="a minute: make test-spark-long"
)
@pytest.mark.timeout(420)
def test_spark_reads_the_demos_history() -> None:
    done = _run("laneway.cli", "demo", "--no-report", "--spark")
    _check_verdict(done)
    assert done.stdout.splitlines()[-1].startswith("Attempts by outcome: 3,400 completed")


@pytest.mark.repeats("the demo runs on a server of its own")
def test_the_demo_leaves_nothing_in_a_given_database_and_ends_well_without_a_report(
    tmp_path: Path,
) -> None:
    file, without = tmp_path / "demo.db", tmp_path / "without"
    without.mkdir()
    (without / "pyarrow.py").write_text("raise ImportError('it is not installed here')")
    place = f"sqlite:///{file}"
    done = _run("laneway.cli", "demo", "--url", place, PYTHONPATH=str(without))
    _check_verdict(done)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("No report this time: ") and 'pip install "laneway[lake]"' in last
    with closing(sqlite3.connect(file)) as connection:
        left = connection.execute("select name from sqlite_master where name not like 'sqlite_%'")
        assert left.fetchall() == []


@pytest.mark.repeats("the demo runs on PostgreSQL")
def test_the_demo_on_mariadb(mariadb: EmbeddedMariaDB) -> None:
    done = _run("laneway.cli", "demo", "--no-report", "--url", mariadb.create_database("demo"))
    _check_verdict(done)
    assert not done.stderr.strip()  # its warnings are of no interest to anybody


def _check_verdict(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    verdict = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "BAD"))]
    assert len(verdict) == 8
    assert not [line for line in verdict if line.startswith("BAD")]


def test_install_and_upgrade_answer_with_the_version(server: EmbeddedPostgres) -> None:
    url = server.create_database("commands")
    for command in ("install", "upgrade"):
        done = _run("laneway.cli", command, "--schema", 'odd "name', "--json", url=url)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"schema": 'odd "name', "version": LATEST}


def test_sql_is_printed_without_a_connection() -> None:
    done = _run("laneway.cli", "sql", "--schema", "jobs")
    assert done.returncode == 0
    assert 'create schema "jobs"' in done.stdout
    assert "laneway" not in done.stdout.split("create table", 1)[1].split("(", 1)[0]
    assert _run("laneway.cli", "sql", "--from", str(LATEST)).stdout.strip() == ""


def test_a_failure_is_one_line_without_the_password() -> None:
    done = _run("laneway.cli", "install", url="postgresql://me:canary@127.0.0.1:1/none")
    assert done.returncode == 1
    assert done.stderr.startswith("laneway: ")
    assert "canary" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
