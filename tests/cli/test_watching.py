"""stats, tail, top."""

import json
import os
import pty
import signal
import subprocess
import time
from datetime import timedelta

import psycopg
import pytest

from laneway import Queue
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
    settle(queue, "before")
    with cli.process("tail", "--json", "--count", "2", "--every", "0.1", "--failures") as process:
        _until_asked(cli, "history_v1")
        settle(queue, "well")
        settle(queue, "ill", "one")
        settle(queue, "ill", "two")
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = [json.loads(line) for line in out.splitlines()]
    assert [(entry["outcome"], entry["reason"]) for entry in found] == [
        ("failed", "one"),
        ("failed", "two"),
    ]


def test_tail_tells_what_went_well_too(cli: Cli, queue: Queue) -> None:
    with cli.process("tail", "--count", "1", "--channel", "a", "--every", "0.1") as process:
        _until_asked(cli, "history_v1")
        settle(queue, "b")
        settle(queue, "a")
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "completed" in out and "default/a" in out and "default/b" not in out


def settle(queue: Queue, channel: str, reason: str | None = None) -> None:
    queue.publish("x", channel=channel)
    (message,) = queue.claim()
    if reason is None:
        message.complete()
    else:
        message.fail(reason)


def _until_asked(cli: Cli, name: str) -> None:
    """Until another process has read this view or table."""
    end = time.monotonic() + 60
    with psycopg.connect(cli.url, autocommit=True) as connection:
        while not connection.execute(
            "select from pg_stat_activity where query like %s and pid <> pg_backend_pid()",
            [f'%"{cli.schema}".{name}%'],
        ).fetchall():
            assert time.monotonic() < end


def test_tail_as_text_ends_with_ctrl_c(cli: Cli, queue: Queue) -> None:
    queue.configure(history="failures")
    process = cli.process("tail", "--queue", "emails", "--every", "0.1")
    assert process.stderr is not None and process.stdout is not None
    notes = process.stderr.readline() + process.stderr.readline()
    assert "queue 'emails' has no messages" in notes and "keeps history 'failures'" in notes
    _until_asked(cli, "history_v1")
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
    rates = {"published_rate", "ended_rate", "rates_counted"}
    assert set(seen) == {"at", *rates, "queues", "channels"}
    assert [n["channel"] for n in seen["channels"]] == ["tenant-1", "tenant-2"]


def test_stats_and_top_show_throughput(cli: Cli, queue: Queue) -> None:
    """By the minute figures once upkeep has counted; top counts itself until then."""
    shown = cli.run("top", "--once").stdout
    assert "published/s" in shown and "ended/s" in shown
    queue.publish_many(range(50))
    queue.complete(queue.claim(20))
    deadline = time.monotonic() + 30
    while True:
        queue.upkeep()
        (seen,) = cli.json("stats")
        if seen["completed_rate"]:
            break
        assert time.monotonic() < deadline
    assert 20 / 125 <= seen["completed_rate"] <= 20 / 59
    assert seen["published_rate"] > 0 and seen["failed_rate"] == 0
    (top,) = cli.json("top", "--once")
    assert top["ended_rate"] > 0 and top["queues"][0]["completed_rate"] > 0


def test_stats_and_top_say_when_the_history_is_off(cli: Cli, queue: Queue) -> None:
    """Zero done would look as if nothing happened."""
    queue.publish_many([1, 2])
    (seen,) = cli.json("top", "--once")
    assert seen["rates_counted"] and "history" not in cli.run("top", "--once").stdout
    queue.configure(history="none")
    queue.complete(queue.claim(1))
    queue.upkeep()
    for command in (["stats"], ["top", "--once"]):
        done = cli.run(*command)
        said = " ".join((done.stdout + done.stderr).split())
        assert "The history is off" in said and "does not mean that nothing happens" in said
        assert "not counted" in done.stdout
    (seen,) = cli.json("top", "--once")
    assert not seen["rates_counted"] and not seen["queues"][0]["rates_counted"]
    (row,) = cli.json("stats")
    assert not row["rates_counted"]
    queue.configure(history="failures")
    assert "keeps only failures" in cli.run("stats").stderr


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


def test_events_are_followed_as_they_happen(cli: Cli, queue: Queue) -> None:
    words = ["events", "--json", "--count", "2", "-w", "published", "-w", "dead", "-q", "emails"]
    with cli.process(*words) as process:
        _until_somebody_listens(cli)
        queue.publish("x", queue="other")
        queue.publish("x", queue="emails", channel="t", kind="k")
        (message,) = queue.claim(queues=["emails"])
        message.fail("no")
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    found = [json.loads(line) for line in out.splitlines()]
    assert [(event["what"], event["message_id"]) for event in found] == [
        ("published", message.id),
        ("dead", message.id),
    ]
    assert (found[0]["queue"], found[0]["channel"], found[0]["kind"]) == ("emails", "t", "k")


def test_events_as_text_end_with_ctrl_c(cli: Cli, queue: Queue) -> None:
    with cli.process("events") as process:
        _until_somebody_listens(cli)
        id = queue.publish("x", channel="t").id
        assert process.stdout is not None
        assert process.stdout.readline().split()[1:] == ["published", "default/t", str(id)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors
    assert "nonsense" in cli.run("events", "-w", "nonsense", code=2).stderr


def _until_somebody_listens(cli: Cli) -> None:
    end = time.monotonic() + 60
    with psycopg.connect(cli.url, autocommit=True) as connection:
        look = f'select from "{cli.schema}".listener'.encode()
        while not connection.execute(look).fetchall():
            assert time.monotonic() < end


def test_wait_says_how_a_message_ended(cli: Cli, queue: Queue) -> None:
    for channel in ("good", "bad", "never"):
        queue.publish("x", channel=channel)
    messages = {message.channel: message for message in queue.claim(3)}
    messages["good"].complete()
    messages["bad"].fail("no such customer")
    (ending,) = cli.json("wait", str(messages["good"].id))
    assert ending["outcome"] == "completed"
    done = cli.run("wait", str(messages["bad"].id), code=1)
    assert "dead" in done.stdout and "no such customer" in done.stdout
    late = cli.run("wait", str(messages["never"].id), "--timeout", "50ms", code=1)
    assert late.stdout == "" and "has not ended" in late.stderr
