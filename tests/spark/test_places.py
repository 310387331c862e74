"""The same program on a real cluster of processes, through spark-submit, and over Spark Connect."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from laneway import Queue
from tests.place import Place
from tests.spark.conftest import LONG
from tests.spark.running import SUBMIT, run_app, submitting


def check(shown: str) -> None:
    assert "MESSAGES 1000" in shown and "COMPLETED 1000" in shown, shown[-3000:]


@LONG
@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "local[2]"])
def test_masters(queue: Queue, place: Place, tmp_path: Path, master: str) -> None:
    done = run_app("round_trip.py", place.url, place.schema, tmp_path, master)
    check(done.stdout + done.stderr)
    assert len(list(queue.claim(1000, queues=["copies"]))) == 1000
    if master.startswith("local-cluster"):
        assert "PROCESSES 2" in done.stdout


@LONG
def test_spark_submit(queue: Queue, place: Place, tmp_path: Path) -> None:
    command = [str(SUBMIT), "--master", "local[2]", "--driver-memory", "1g"]
    arguments = (place.url, place.schema, tmp_path, "-")
    done = run_app("round_trip.py", *arguments, command=command, environment=submitting())
    check(done.stdout + done.stderr)


@LONG
def test_spark_connect(queue: Queue, place: Place, tmp_path: Path) -> None:
    environment = {**os.environ, "SPARK_REMOTE": "local[2]"}
    arguments = (place.url, place.schema, tmp_path, "-")
    done = run_app("round_trip.py", *arguments, environment=environment)
    check(done.stdout + done.stderr)
    assert len(list(queue.claim(1000, queues=["copies"]))) == 1000


@LONG
def test_doctor_looks_at_spark(queue: Queue, place: Place) -> None:
    arguments = ["doctor", "--spark", "--json", "--url", place.url, "--schema", place.schema]
    done = subprocess.run(
        [sys.executable, "-m", "laneway.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    found = {line["check"]: line["level"] for line in map(json.loads, done.stdout.splitlines())}
    assert found["Spark: Java"] == found["Spark: workers"] == "ok", done.stdout + done.stderr
    assert "connection" in found
