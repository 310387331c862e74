"""Runs the cases by Django's own test runner, in a process of its own: settings hold for one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]


def test_on_sqlite(tmp_path: Path) -> None:
    run(f"sqlite:///{tmp_path / 'site.sqlite3'}")


@pytest.mark.repeats("the same cases on another database")
def test_on_postgresql(server: EmbeddedPostgres) -> None:
    run(server.create_database(f"django_{time.monotonic_ns()}"))


@pytest.mark.repeats("the same cases on another database")
def test_on_mariadb(mariadb: EmbeddedMariaDB) -> None:
    run(mariadb.create_database(f"django_{time.monotonic_ns()}"))


def run(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.django_backend"],
        env={**os.environ, "DATABASE_URL": url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=590,
    )
    if done.returncode:
        pytest.fail(done.stdout + done.stderr)
