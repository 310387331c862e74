"""dead: list, redrive, discard."""

import os
import pty
import signal

import pytest

from laneway import NewMessage, Queue, Worker
from tests.cli.commands import Cli, read_until


@pytest.fixture
def letters(queue: Queue) -> list[int]:
    """Six in two channels, for two reasons."""
    queue.publish_many([NewMessage(n, channel=f"c{n % 2}", kind=f"k{n}") for n in range(6)])
    ids = []
    for n, message in enumerate(sorted(queue.claim(6), key=lambda message: message.id)):
        message.fail(f"r{n // 3}", error=ValueError("bad"))
        ids.append(message.id)
    return ids


def left(queue: Queue) -> list[int]:
    return [letter.id for letter in queue.dead_letters.list()][::-1]


def test_list_by_filters(cli: Cli, letters: list[int]) -> None:
    found = cli.json("dead")
    assert [letter["id"] for letter in found] == letters[::-1]
    assert (found[-1]["reason"], found[-1]["error_type"]) == ("r0", "ValueError")
    assert "payload" not in found[0] and found[0]["payload_size"] == 1
    assert len(cli.json("dead", "list", "--reason", "r1", "--channel", "c1")) == 2
    assert len(cli.json("dead", "list", "--since", "1h", "-n", "4")) == 4
    assert cli.json("dead", "list", "--until", "1h") == []
    assert "ValueError bad" in cli.run("dead", "list", "-k", "k2").stdout
    assert "No dead letter" in cli.run("dead", "-q", "nobody").stderr
    for never in ("then", "0001-01-01", "99999999d", "9999999999999d", "9999-12-31T23:59-10:00"):
        assert "Traceback" not in cli.run("dead", "list", "--since", never, code=2).stderr


def test_redrive_shows_how_many_and_asks(cli: Cli, queue: Queue, letters: list[int]) -> None:
    refused = cli.run("dead", "redrive", "--queue", "default", code=2)
    assert "6 in total" in refused.stderr and f"  {letters[-2]}  default/c0" in refused.stderr
    assert "Redrive: 6 dead letters?" in refused.stderr and "add --yes" in refused.stderr
    preview = cli.run("dead", "redrive", "--reason", "r0", "--dry-run")
    assert "Would redrive 3." in preview.stderr
    answer = {"would_redrive": 3, "or_more": False}
    assert cli.json("dead", "redrive", "--reason", "r0", "--dry-run") == [answer]
    assert left(queue) == letters
    assert cli.json("dead", "redrive", "--reason", "r0", "--yes") == [{"redriven": 3}]
    assert left(queue) == letters[3:]
    code, seen = cli.terminal("dead", "redrive", "--all", answer="y\n")
    assert code == 0 and "3 redriven." in seen
    assert left(queue) == []


def test_redrive_by_id_with_a_budget_and_a_delay(
    cli: Cli, queue: Queue, letters: list[int]
) -> None:
    words = ["dead", "redrive", str(letters[0]), "999999", "--max-attempts", "3", "--delay", "1h"]
    done = cli.run(*words, "--yes")
    assert "999999  is not a dead letter" in done.stderr and "1 redriven." in done.stderr
    info = queue.message(letters[0])
    assert info is not None and (info.state, info.max_attempts) == ("scheduled", 3)


def test_discard(cli: Cli, queue: Queue, letters: list[int]) -> None:
    cli.run("dead", "discard", str(letters[0]), code=2)
    answer = {"would_discard": 6, "or_more": False}
    assert cli.json("dead", "discard", "--all", "--dry-run") == [answer]
    assert cli.json("dead", "discard", str(letters[0]), "--yes") == [{"discarded": 1}]
    assert cli.json("dead", "discard", "--channel", "c1", "--yes") == [{"discarded": 3}]
    assert left(queue) == [letters[2], letters[4]]


def test_nothing_to_do(cli: Cli, letters: list[int]) -> None:
    for verb in ("redrive", "discard"):
        assert "No dead letter" in cli.run("dead", verb, "-r", "other", "--yes", code=3).stderr
        assert "which dead letters?" in cli.run("dead", verb, "--yes", code=2).stderr
        cli.run("dead", verb, "1", "--queue", "q", "--yes", code=2)
        cli.run("dead", verb, "1", "--all", "--yes", code=2)


def test_ctrl_c_at_the_question_does_nothing(cli: Cli, queue: Queue, letters: list[int]) -> None:
    ours, theirs = pty.openpty()
    with cli.process("dead", "redrive", "--all", stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        read_until(ours, "[y/N]")
        run.send_signal(signal.SIGINT)
        assert "Nothing was done." in read_until(ours, "done.")
    os.close(ours)
    assert run.returncode == 130
    code, seen = cli.terminal("dead", "redrive", "--all", answer="\x04")  # Ctrl-D
    assert code == 1 and "Nothing was done." in seen
    code, seen = cli.terminal("dead", "redrive", "--all", answer="what\nNo\n")
    assert code == 1 and "Please answer y or n." in seen and seen.count("[y/N]") == 2
    assert left(queue) == letters


def test_groups_and_one_with_its_traceback(cli: Cli, queue: Queue, letters: list[int]) -> None:
    found = cli.json("dead", "groups", "--queue", "default")
    assert [(group["count"], group["error_type"]) for group in found] == [(1, "ValueError")] * 6
    assert "ValueError: bad" in cli.run("dead", "groups").stdout
    queue.publish(7)
    try:
        raise LookupError("no customer 42")
    except LookupError as error:
        message = queue.claim()[0]
        message.fail("gone", error=error)
    shown = cli.run("dead", "show", str(message.id)).stdout
    assert "LookupError: no customer 42" in shown
    assert "in test_groups_and_one_with_its_traceback" in shown
    assert "Traceback" in cli.json("dead", "show", str(message.id))[0]["traceback"]
    cli.run("dead", "show", "999999", code=3)


def test_workers_are_listed(cli: Cli, queue: Queue) -> None:
    assert "No worker is running." in cli.run("workers").stderr
    worker = Worker(queue, queues=["emails"], concurrency=3)
    seen = []

    @worker.handler("look")
    def look(payload: int) -> None:
        while not (found := cli.json("workers")):
            pass
        seen.append((found, cli.run("workers").stdout))

    queue.publish(1, kind="look", queue="emails")
    worker.run(max_messages=1)
    ((found, text),) = seen
    assert (found[0]["queues"], found[0]["kinds"], found[0]["slots"]) == (["emails"], ["look"], 3)
    assert "running" in text and "emails" in text


def test_a_running_message_is_asked_to_stop(cli: Cli, queue: Queue) -> None:
    published = queue.publish(1)
    queue.claim()
    done = cli.run("cancel", str(published.id), "--running", "--yes")
    assert "requested" in done.stdout and "Asked to stop: 1." in done.stderr
