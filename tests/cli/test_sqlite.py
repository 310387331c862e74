"""The same commands on a file."""

from pathlib import Path

import pytest

from penstock import Queue
from tests.cli.commands import Cli


@pytest.fixture
def file(tmp_path: Path) -> Cli:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with Queue(url, schema="penstock") as queue:
        queue.install()
    return Cli(url, "penstock")


def test_a_message_through_the_command_line(file: Cli) -> None:
    (published,) = file.json("publish", '{"n": 1}', "-c", "a")
    id = str(published["id"])
    assert [info["id"] for info in file.json("messages", "-c", "a")] == [published["id"]]
    file.run("channels", "limit", "a", "--concurrency", "2")
    (info,) = file.json("channels")
    assert (info["policy"]["concurrency"], info["numbers"]["waiting"]) == (2, 1)
    with Queue(file.url) as queue:
        (message,) = queue.claim()
        message.fail("no")
    assert file.json("dead", "redrive", "--reason", "no", "--yes") == [{"redriven": 1}]
    file.run("cancel", id, "--yes")
    outcomes = [entry["outcome"] for entry in file.json("history", id)]
    assert outcomes == ["failed", "redriven", "cancelled"]
    assert "finished: cancelled" in file.run("show", id).stdout


def test_doctor_and_bench(file: Cli) -> None:
    found = {finding["check"]: finding["level"] for finding in file.json("doctor")}
    assert found["connection"] == found["schema"] == found["upkeep"] == "ok"
    (rates,) = file.json("bench", "--yes", "--messages", "100")
    assert rates["claim_complete"] > 0
    assert "no roles" in file.run("install", "--roles", code=2).stderr


def test_lines_and_watching(file: Cli) -> None:
    file.run("publish", "--lines", "-", input="1\n2\n3\n")
    (numbers,) = file.json("stats")
    assert numbers["waiting"] == 3
    (seen,) = file.json("top", "--once")
    assert seen["channels"][0]["waiting"] == 3
