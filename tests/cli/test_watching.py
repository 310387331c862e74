"""stats, tail, top."""

import json
import os
import pty
import signal
import subprocess
from datetime import timedelta

import pytest

from penstock import Queue
from tests.cli.commands import COMMAND, Cli, read_until


def test_stats(cli: Cli, queue: Queue) -> None:
    assert "All queues are empty" in cli.run("stats").stderr
    assert cli.json("stats") == []
    queue.publish_many([1, 2], channel="a")
    queue.publish(3, delay=timedelta(hours=1), queue="emails")
    emails, default = sorted(cli.json("stats"), key=lambda n: str(n["queue"]), reverse=True)
    assert (default["waiting"], default["channels"]) == (2, 1)
    assert (emails["scheduled"], emails["oldest_due"]) == (1, None)
    assert "default\t2\t0\t0\t0\t1\t" in cli.run("stats").stdout


def test_tail_follows_what_ends(cli: Cli, queue: Queue) -> None:
    queue.publish("before")
    (message,) = queue.claim()
    message.complete()
    process = cli.process("tail", "--json", "--count", "2", "--failures", "--every", "0.1")
    queue_of_others = process.stdout
    assert queue_of_others is not None
    ready = cli.process("tail", "--json", "--count", "1", "--every", "0.1")
    for _ in range(200):  # until both have begun to look
        queue.publish("x", channel="a")
        (message,) = queue.claim()
        message.complete()
        if ready.poll() is not None:
            break
    first = json.loads(ready.communicate(timeout=30)[0])
    assert (first["outcome"], first["channel"]) == ("completed", "a")
    for reason in ("one", "two"):
        queue.publish("x", channel="b")
        (message,) = queue.claim()
        message.fail(reason)
    out, _ = process.communicate(timeout=30)
    assert [json.loads(line)["reason"] for line in out.splitlines()] == ["one", "two"]
    assert process.returncode == 0


def test_tail_as_text_ends_with_ctrl_c(cli: Cli, queue: Queue) -> None:
    queue.configure(history="failures")
    process = cli.process("tail", "--queue", "emails", "--every", "0.1")
    assert process.stderr is not None and process.stdout is not None
    assert "keeps history 'failures'" in process.stderr.readline()
    queue.publish("x", channel="b\x1b", queue="emails", kind="k")
    queue.publish("x", channel="b")
    for name in ("default", "emails"):
        (message,) = queue.claim(queues=[name])
        message.fail("no\nway")
    while not (line := process.stdout.readline()):
        assert process.poll() is None
    assert "failed" in line and "emails/b\\x1b" in line and "DEAD" in line and "no\\nway" in line
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors


def test_top_once(cli: Cli, queue: Queue) -> None:
    queue.publish_many([1, 2], channel="tenant-1")
    queue.publish(1, queue="emails", channel="tenant-2")
    shown = cli.run("top", "--once").stdout
    assert "tenant-1" in shown and "tenant-2" in shown
    assert "tenant-1" not in cli.run("top", "--once", "--queue", "emails").stdout
    (seen,) = cli.json("top", "--once")
    assert set(seen) == {"at", "published_rate", "ended_rate", "queues", "channels"}
    assert [n["channel"] for n in seen["channels"]] == ["tenant-1", "tenant-2"]


def test_top_without_a_terminal_says_so(cli: Cli) -> None:
    assert "needs a terminal" in cli.run("top", code=2).stderr


def test_top_streams_rates(cli: Cli, queue: Queue) -> None:
    process = cli.process("top", "--json", "--every", "0.2")
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    queue.publish_many(list(range(500)))
    second = json.loads(process.stdout.readline())
    if not second["published_rate"]:  # the look came before the publish
        second = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert first["published_rate"] is None
    assert second["published_rate"] > 0
    assert process.returncode == 130


@pytest.mark.parametrize("columns", [40, 120])
def test_top_in_a_terminal_ends_whole(cli: Cli, queue: Queue, columns: int) -> None:
    queue.publish_many([1, 2], channel="t1")
    ours, theirs = pty.openpty()
    environment = cli.environment() | {"COLUMNS": str(columns), "LINES": "20", "TERM": "xterm"}
    process = subprocess.Popen(
        [*COMMAND, "top", "--every", "0.2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    seen = read_until(ours, "published/s")
    process.send_signal(signal.SIGINT)
    seen += read_until(ours, "\x1b[?1049l")
    os.close(ours)
    assert "t1" in seen and "\x1b[?1049h" in seen
    assert process.wait(30) == 130
