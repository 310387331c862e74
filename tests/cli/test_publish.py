"""publish: from words, files, stdin, and lines with bad ones among them."""

import json
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from penstock import Queue
from tests.cli.commands import Cli


def payloads(queue: Queue) -> list[object]:
    return [message.json() for message in queue.claim(1000)]


def test_a_payload_from_the_command_line(cli: Cli, queue: Queue) -> None:
    done = cli.run("publish", '{"order": 1}', "-c", "t", "-k", "receipt", "--priority", "3")
    id = int(done.stdout)
    (message,) = queue.claim()
    assert (message.id, message.channel, message.kind) == (id, "t", "receipt")
    assert (message.priority, message.json()) == (3, {"order": 1})


def test_the_answer_as_json_and_a_key_that_lives(cli: Cli) -> None:
    (first,) = cli.json("publish", "1", "--key", "k")
    assert first["status"] == "published"
    assert cli.json("publish", "1", "--key", "k") == [first | {"status": "existing"}]
    assert "nothing was published" in cli.run("publish", "1", "--key", "k").stderr


def test_text_bytes_headers_and_times(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    cli.run("publish", "hello", "--as", "text", "-H", "a=b", "-H", "c=d=e")
    cli.run("publish", "--file", str(file), "--as", "bytes", "--content-type", "image/png")
    cli.run("publish", "--file", "-", input="[1]")
    text, image, stdin = queue.claim(10)
    assert (text.text(), text.headers) == ("hello", {"a": "b", "c": "d=e"})
    assert (image.payload, image.content_type) == (b"\x00\xff", "image/png")
    assert stdin.json() == [1]
    (later,) = cli.json("publish", "1", "--delay", "1h30m", "--expires-in", "2d")
    info = queue.message(later["id"])
    assert info is not None and info.due is not None and info.expires_at is not None
    assert (info.due - info.published_at).total_seconds() == 5400
    (at,) = cli.json("publish", "1", "--at", "2099-01-31T08:00+01:00")
    info = queue.message(at["id"])
    assert info is not None and info.due is not None
    assert info.due.isoformat() == "2099-01-31T07:00:00+00:00"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["1", "--file", "x"],
        ["1", "--skip", "3"],
        ["not json"],
        ["1", "--delay", "soon"],
        ["1", "--at", "tomorrow"],
        ["1", "-H", "none"],
        ["1", "--channel", ""],
        ["--file", "/nowhere/at/all"],
    ],
)
def test_wrong_words_publish_nothing(cli: Cli, queue: Queue, words: list[str]) -> None:
    done = cli.run("publish", *words, code=2)
    assert done.stdout == "" and done.stderr
    assert queue.numbers() == []


def test_a_message_for_each_line(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text('{"n": 1}\r\n\n{"n": 2}\n{"n": 3}')
    done = cli.run("publish", "--lines", str(file))
    assert (done.stdout, done.stderr) == ("", "3 published.\n")
    assert payloads(queue) == [{"n": 1}, {"n": 2}, {"n": 3}]
    found = cli.json("publish", "--lines", "-", "--as", "text", input="one\ntwo\n")
    assert [(x["line"], x["status"]) for x in found] == [(1, "published"), (2, "published")]
    assert [message.text() for message in queue.claim(10)] == ["one", "two"]


def test_lines_that_are_messages_themselves(cli: Cli, queue: Queue) -> None:
    lines = [
        {"payload": 1, "channel": "a", "delay": "1h", "key": "k"},
        {"payload": 2, "queue": "other", "priority": 9, "headers": {"h": 1}},
        {"payload": 3, "chanel": "typo"},
        {"no": "payload"},
        {"payload": 4, "priority": 77},
        {"payload": 5, "delay": "later"},
    ]
    text = "\n".join(map(json.dumps, lines))
    found = cli.json("publish", "--lines", "-", "--as", "message", "-c", "b", input=text, code=1)
    assert [x["line"] for x in found] == [1, 2, 3, 4, 5, 6]
    assert [x["status"] for x in found] == ["published"] * 2 + ["bad"] * 4
    first, second = (queue.message(x["id"]) for x in found[:2])
    assert first is not None and second is not None
    assert (first.channel, first.state, first.key) == ("a", "scheduled", "k")
    assert (second.queue, second.channel, second.priority) == ("other", "b", 9)


def test_bad_lines_are_named_kept_and_left_out(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects"
    lines = "\n".join("oops" if n % 10 == 0 else str(n) for n in range(1, 2501))
    done = cli.run("publish", "--lines", "-", "--rejects", str(rejects), input=lines, code=1)
    assert "line 10: the payload is not JSON" in done.stderr
    assert "2,250 published, 250 bad lines left out." in done.stderr
    assert done.stderr.count("\n") == 20 + 2
    assert rejects.read_text() == "oops\n" * 250
    assert queue.channel("default").numbers().waiting == 2250


def test_a_full_channel_refuses_lines_and_says_which(cli: Cli, queue: Queue) -> None:
    queue.channel("small").limit(backlog=2)
    done = cli.run("publish", "--lines", "-", "-c", "small", input="1\n2\n3\n", code=1)
    assert "the channel is full" in done.stderr
    waiting = queue.channel("small").numbers().waiting
    assert f"{waiting:,} published" in done.stderr and waiting < 3


def test_going_on_after_some_lines(cli: Cli, queue: Queue) -> None:
    cli.run("publish", "--lines", "-", "--skip", "2", input="1\n2\n3\n4")
    assert payloads(queue) == [3, 4]
    cli.run("publish", "--lines", "-", "--skip", "3", input="1\n2\n3\n4")
    assert payloads(queue) == [4]
    cli.run("publish", "--lines", "-", "--skip", "4", input="1\n2\n3\n4")
    assert payloads(queue) == []


def _feed(process: "subprocess.Popen[str]", line: str) -> dict[str, object]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer: dict[str, object] = json.loads(process.stdout.readline())
    return answer


def test_a_slow_pipe_is_published_as_it_comes_and_ctrl_c_leaves_it_whole(
    cli: Cli, queue: Queue
) -> None:
    process = cli.process("publish", "--lines", "-", "--json")
    assert _feed(process, "1")["line"] == 1
    assert _feed(process, "2")["line"] == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "go on with --skip 2" in errors and "Traceback" not in errors
    assert payloads(queue) == [1, 2]


def test_a_lost_connection_says_which_lines_are_in_doubt(cli: Cli, queue: Queue) -> None:
    process = cli.process("publish", "--lines", "-", "--json", "--as", "message")
    _feed(process, '{"payload": 1}')
    with psycopg.connect(cli.url) as mine:
        queue.publish(0, key="k", connection=mine)  # the other publish waits for this one
        assert process.stdin is not None
        process.stdin.write('{"payload": 2, "key": "k"}\n')
        process.stdin.flush()
        _terminate_waiting(cli)
        mine.rollback()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1, errors
    assert "Whether lines 2 to 2 were published is unknown" in errors
    assert "--skip 1" in errors and "Traceback" not in errors
    assert payloads(queue) == [1]


def _terminate_waiting(cli: Cli) -> None:
    """Ends the session that waits for a key, once it does."""
    end = time.monotonic() + 30
    with psycopg.connect(cli.url, autocommit=True) as connection:
        while time.monotonic() < end:
            found = connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where wait_event_type = 'Lock' and query like %s",
                [f'%"{cli.schema}".publish_v1%'],
            ).fetchall()
            if found:
                return
    raise AssertionError("nobody waits")
