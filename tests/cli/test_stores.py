"""The same commands on the other databases."""

import json

import pytest
from typer.testing import CliRunner

from laneway import Queue
from laneway.cli.app import app
from tests.cli.commands import Cli
from tests.stores import STORES, Databases


@pytest.fixture(params=["SQLite", "MariaDB"])
def other(request: pytest.FixtureRequest) -> Cli:
    store: Databases = request.getfixturevalue(STORES[request.param].fixture)
    url = store.create_database(f"cli {request.node.name}"[:60])
    with Queue(url, schema="laneway") as queue:
        queue.install()
    return Cli(url, "laneway")


def test_a_message_through_the_command_line(other: Cli) -> None:
    (published,) = other.json("publish", '{"n": 1}', "-c", "a")
    id = str(published["id"])
    assert [info["id"] for info in other.json("messages", "-c", "a")] == [published["id"]]
    other.run("channels", "limit", "a", "--concurrency", "2")
    (info,) = other.json("channels")
    assert (info["policy"]["concurrency"], info["stats"]["waiting"]) == (2, 1)
    with Queue(other.url) as queue:
        (message,) = queue.claim()
        message.fail("no")
    assert other.json("dead", "redrive", "--reason", "no", "--yes") == [{"redriven": 1}]
    other.run("cancel", id, "--yes")
    outcomes = [entry["outcome"] for entry in other.json("history", id)]
    assert outcomes == ["failed", "redriven", "cancelled"]
    assert "finished: cancelled" in other.run("show", id).stdout


def test_doctor_and_bench(other: Cli) -> None:
    done = CliRunner().invoke(app, ["doctor", "--json"], env=other.place())
    assert done.exit_code in (0, 3), done.output  # a server for tests may be less careful
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    found = {finding["check"]: finding["level"] for finding in findings}
    assert found["connection"] == found["schema"] == found["upkeep"] == "ok"
    (rates,) = other.json("bench", "--yes", "--messages", "100")
    assert rates["claim_complete"] > 0
    assert "roles" in other.run("install", "--roles", code=2).stderr


def test_lines_and_watching(other: Cli) -> None:
    other.run("publish", "--lines", "-", input="1\n2\n3\n")
    (numbers,) = other.json("stats")
    assert numbers["waiting"] == 3
    (seen,) = other.json("top", "--once")
    assert seen["channels"][0]["waiting"] == 3
