"""Mistakes of a new user: each is answered by one sentence that says what to do."""

import os
import subprocess
from pathlib import Path

import pytest

from laneway import Queue, __version__
from tests.cli.commands import COMMAND, Cli

_JOBS = """
import os
from laneway import Queue, Worker
queue = Queue(os.environ["DATABASE_URL"], schema=os.environ.get("LANEWAY_SCHEMA", "laneway"))
worker = Worker(queue)

@worker.handler
async def greet(name: str) -> None:
    print("hello", name, flush=True)
"""


def run(folder: Path, *words: str, url: str | None = None) -> "subprocess.CompletedProcess[str]":
    """As in a new terminal: only what the shell has, and perhaps a DATABASE_URL."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "LANEWAY_SCHEMA", "LANEWAY_QUEUE")
    }
    if url is not None:
        environment["DATABASE_URL"] = url
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(_JOBS)
    (tmp_path / "empty.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["stats"],
            "no database given: set DATABASE_URL, pass --url, or put url into laneway.toml",
        ),
        (
            ["worker", "jobs:worker"],
            "module 'jobs' needs the environment variable DATABASE_URL: export it first",
        ),
        (
            ["worker", "empty:worker"],
            "module 'empty' has no 'worker': define one: worker = Worker(queue)",
        ),
        (["pubish", "{}"], "no such command 'pubish': did you mean 'publish'?"),
        (
            ["--url", "sqlite:///a.db", "stats"],
            "no such option: --url: write options after the command, as in laneway stats --url",
        ),
        (["stats", "--url", "sqlite:///new.db"], "create it with laneway install"),
        (["stats", "--url", "oracle://x"], "use one like postgresql://localhost/shop"),
    ],
)
def test_before_there_is_a_database(folder: Path, words: list[str], says: str) -> None:
    done = run(folder, *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("laneway: ") and says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_schema_that_is_not_installed(folder: Path) -> None:
    (folder / "new.db").touch()
    for words in (["publish", "{}"], ["worker", "jobs:worker"], ["stats"]):
        done = run(folder, *words, url="sqlite:///new.db")
        assert done.returncode == 1, done.stderr
        last = done.stderr.splitlines()[-1]
        assert "laneway: " in last and "laneway install" in last
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            ["publish", "{broken"],
            2,
            "the payload is not JSON: Expecting property name enclosed in double quotes: line 1 "
            "column 2 (char 1); to publish it as it is, use --as text or --as bytes",
        ),
        (
            ["publish", "{}", "--delay", "soon"],
            2,
            "'soon' is not a duration: write 30s, 5m, 1h30m or 2d",
        ),
        (
            ["publish", "{}", "--at", "tomorrow"],
            2,
            "'tomorrow' is not a time: write 2026-01-31T08:00+01:00, or 2026-01-31 08:00 (local)",
        ),
        (
            ["dead", "redrive"],
            2,
            "which dead letters? Give ids, filters such as --queue emails, or --all",
        ),
        (["dead", "redrive", "--all"], 3, "No dead letter matches. Nothing to redrive."),
        (
            ["messages", "--queue", "emials"],
            0,
            "No message matches: queue 'emials' has no messages; perhaps 'emails' is meant.",
        ),
        (
            ["channels", "pause", "tenant-42"],
            0,
            "channel 'tenant-42' of queue 'default' has no messages and no limits; check the name",
        ),
        (
            ["channels", "limit", "a", "--rate", "fast"],
            2,
            "--rate: 'fast' is not a number: write digits, or none",
        ),
        (["schedules", "run", "nightly"], 3, "no schedule 'nightly': there are no schedules"),
        (["show", "99"], 3, "There is no message 99"),
    ],
)
def test_with_a_queue(cli: Cli, queue: Queue, words: list[str], code: int, says: str) -> None:
    queue.publish(1, queue="emails")
    done = cli.run(*words, code=code)
    assert says in done.stderr


def test_the_version(folder: Path) -> None:
    for words in (["--version"], ["-V"], ["version"]):
        done = run(folder, *words)
        assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


_WITH_A_QUEUE = {
    "top": ["top", "--once"],
    "limits": ["limits"],
    "flows": ["flows", "list"],
    "tail": ["tail", "--count", "1"],
    "events": ["events", "--count", "1"],
    "schedules": ["schedules", "list"],
    "fairness": ["fairness"],
    "pause": ["pause"],
    "publish": ["publish", "1"],
    "subscribe": ["topics", "subscribe", "orders"],
}


@pytest.mark.parametrize("command", _WITH_A_QUEUE)
def test_a_queue_that_nothing_knows_is_noted(cli: Cli, queue: Queue, command: str) -> None:
    queue.topic("orders").subscribe("emails")
    note = "Note: queue {!r} has no messages, workers, schedules or subscriptions"
    words = _WITH_A_QUEUE[command]
    if command in ("tail", "events"):  # which wait for what comes
        with cli.process(*words, "--queue", "emials") as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            process.kill()
        assert line == f"{note.format('emials')}: did you mean 'emails'?\n"
        return
    done = cli.run(*words, "--queue", "emials")
    assert f"{note.format('emials')}: did you mean 'emails'?" in done.stderr
    done = cli.run(*words, "--queue", "invoices")
    may_be_new = command in ("publish", "subscribe")
    assert (note.format("invoices") in done.stderr) is not may_be_new
    assert "Note: " not in cli.run(*words, "--queue", "emails").stderr
    assert "Note: " not in cli.run(*words).stderr
