"""publish: from words, files, stdin, and lines with bad ones among them."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from laneway import Queue
from tests.cli.commands import COMMAND, Cli


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


def test_a_key_that_is_replaced_or_debounced(cli: Cli, queue: Queue) -> None:
    (first,) = cli.json("publish", "1", "--key", "k")
    again = ("publish", "2", "--key", "k", "--on-duplicate", "replace")
    assert cli.json(*again) == [first | {"status": "replaced"}]
    assert "took the place" in cli.run(*again).stderr
    assert payloads(queue) == [2]
    lines = '{"payload": 3, "key": "d", "delay": "1h"}\n{"payload": 4}\n'
    options = ("--as", "message", "--on-duplicate", "debounce", "--debounce-for", "2h")
    for told in ("2 published", "1 published, 1 replaced"):
        done = cli.run("publish", "--lines", "-", *options, input=lines)
        assert told in done.stderr
    assert cli.run("publish", "1", "--on-duplicate", "replace", code=2)


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
        ["1", "--at", "0001-01-01"],
        ["1", "--key", "k", "--key-window", "long"],
        ["1", "--key-window", "1h"],
        ["\udcff"],  # what a shell makes of a byte that is no UTF-8
        ["\udcff", "--as", "text"],
        ["1", "-H", "a=\udcff"],
        ["1", "-H", "none"],
        ["1", "--channel", ""],
        ["--file", "/nowhere/at/all"],
        ["--lines", "-", "--rejects", "/nowhere/at/all"],
    ],
)
def test_wrong_words_publish_nothing(cli: Cli, queue: Queue, words: list[str]) -> None:
    done = cli.run("publish", *words, code=2)
    assert done.stdout == "" and done.stderr
    assert queue.stats() == []


def test_an_argument_may_be_any_bytes(cli: Cli, queue: Queue) -> None:
    cli.run("publish", "\udcff\udcfe", "--as", "bytes")
    (message,) = queue.claim()
    assert message.payload == b"\xff\xfe"


def test_the_end_of_time_elsewhere_is_one_sentence(
    cli: Cli, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        done = cli.run("publish", "1", "--at", "9999-12-31T23:00", code=2)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "use a time in the years 1 to 9999 (UTC)" in done.stderr
    assert queue.stats() == []


def test_a_key_holds_after_its_message_for_its_window(cli: Cli, queue: Queue) -> None:
    line = '{"payload": 1, "key": "%s"}\n{"payload": 2}\n'
    words = ["publish", "--lines", "-", "--as", "message"]
    for key, options, again in (
        ("while it lives", [], ["published", "published"]),
        ("longer", ["--key-window", "1h"], ["existing", "published"]),
    ):
        cli.run(*words, *options, input=line % key)
        queue.complete(queue.claim(10))
        found = cli.json(*words, *options, input=line % key)
        assert [answer["status"] for answer in found] == again
        queue.complete(queue.claim(10))
    cli.run("publish", "1", "--key", "one", "--key-window", "1h")
    queue.complete(queue.claim(10))
    (answer,) = cli.json("publish", "1", "--key", "one")
    assert answer["status"] == "existing"


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
        {"payload": 4, "priority": 777},
        {"payload": 5, "delay": "later"},
        {"payload": 6, "at": "0001-01-01"},
    ]
    text = "\n".join(map(json.dumps, lines))
    found = cli.json("publish", "--lines", "-", "--as", "message", "-c", "b", input=text, code=1)
    assert [x["line"] for x in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [x["status"] for x in found] == ["published"] * 2 + ["bad"] * 5
    first, second = (queue.message(x["id"]) for x in found[:2])
    assert first is not None and second is not None
    assert (first.channel, first.state, first.key) == ("a", "scheduled", "k")
    assert (second.queue, second.channel, second.priority) == ("other", "b", 9)


def test_bad_lines_are_named_kept_and_left_out(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects"
    lines = "\n".join("oops" if n % 10 == 0 else str(n) for n in range(1, 2501))
    done = cli.run("publish", "--lines", "-", "--rejects", str(rejects), input=lines, code=1)
    assert "line 10: the payload is not JSON" in done.stderr
    assert "2,250 published, 250 bad lines skipped." in done.stderr
    assert done.stderr.count("\n") == 20 + 2
    assert rejects.read_text() == "oops\n" * 250
    assert queue.channel("default").stats().waiting == 2250


def test_bad_lines_are_kept_as_they_were(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    lines, rejects = tmp_path / "lines", tmp_path / "rejects"
    lines.write_bytes(b"1\r\n oops\r\r\n2\r\nlast")
    cli.run("publish", "--lines", str(lines), "--rejects", str(rejects), code=1)
    assert rejects.read_bytes() == b" oops\r\r\nlast\n"
    assert payloads(queue) == [1, 2]
    cli.run("publish", "--lines", "-", "--as", "bytes", input=b"a\r\r\nb\r\n")
    assert [message.payload for message in queue.claim(10)] == [b"a\r", b"b"]


def test_going_on_keeps_the_lines_that_were_kept_before(cli: Cli, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects"
    words = ["publish", "--lines", "-", "--rejects", str(rejects)]
    cli.run(*words, input="1\nbad one\n2\n", code=1)
    cli.run(*words, "--skip", "3", input="1\nbad one\n2\nbad two\n3\n", code=1)
    assert rejects.read_text() == "bad one\nbad two\n"
    cli.run(*words, input="other\n", code=1)
    assert rejects.read_text() == "other\n"


def test_the_input_is_no_file_for_rejects(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    file, link = tmp_path / "mended", tmp_path / "link"
    file.write_text("11\nstill bad\n")
    link.symlink_to(file)
    for name in (file, link):
        done = cli.run("publish", "--lines", str(file), "--rejects", str(name), code=2)
        assert "is the input itself" in done.stderr
    with file.open() as stdin:
        process = cli.process("publish", "--lines", "-", "--rejects", str(file), stdin=stdin)
        process.communicate(timeout=30)
    assert process.returncode == 2
    assert file.read_text() == "11\nstill bad\n"
    assert queue.stats() == []


def test_a_full_disk_for_rejects_says_where_to_go_on(cli: Cli, queue: Queue) -> None:
    words = ["publish", "--lines", "-", "--rejects", "/dev/full"]
    done = cli.run(*words, input="1\noops\n2\n", code=1)
    assert "2 published, 1 bad lines skipped." in done.stderr
    assert "continue with --skip 3" in done.stderr
    assert "cannot write to /dev/full: No space left" in done.stderr
    assert "from line 2 on" in done.stderr
    assert payloads(queue) == [1, 2]


def test_a_full_channel_refuses_lines_and_says_which(cli: Cli, queue: Queue) -> None:
    queue.channel("small").limit(backlog=2)
    done = cli.run("publish", "--lines", "-", "-c", "small", input="1\n2\n3\n", code=1)
    assert "the channel is full" in done.stderr
    waiting = queue.channel("small").stats().waiting
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
    assert "continue with --skip 2" in errors and "Traceback" not in errors
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
    assert "It is unknown whether lines 2 to 2 were published" in errors
    assert "--skip 1: lines with a key are not published twice" in errors
    assert "--key-window" in errors and "Traceback" not in errors
    assert payloads(queue) == [1]


def test_a_batch_that_the_database_refuses_says_where_to_go_on(cli: Cli, queue: Queue) -> None:
    with psycopg.connect(cli.url, autocommit=True) as connection:
        change = f'alter table "{cli.schema}".message add check (priority < 9)'
        connection.execute(change.encode())
    process = cli.process("publish", "--lines", "-", "--json", "--as", "message")
    _feed(process, '{"payload": 1}')
    _, errors = process.communicate('{"payload": 2, "priority": 9}\n', timeout=30)
    assert process.returncode == 1, errors
    assert "1 published." in errors and "continue with --skip 1." in errors
    assert "laneway: " in errors and "Traceback" not in errors
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


@pytest.mark.parametrize("form", ["json", "text", "bytes", "message"])
def test_a_file_without_an_end_is_refused(cli: Cli, queue: Queue, form: str) -> None:
    done = cli.run("publish", "--file", "/dev/zero", "--as", form, code=2)
    assert re.search(r"there are more than [\d,]+ bytes", done.stderr)
    done = cli.run("publish", "--lines", "/dev/zero", "--as", form, code=2)
    assert re.search(r"line 1 has more than [\d,]+ bytes", done.stderr)
    assert payloads(queue) == []


@pytest.mark.parametrize("option", ["--file", "--lines"])
@pytest.mark.parametrize("through", ["| {} -", "> pipe & {} pipe"])
def test_a_pipe_without_an_end_is_refused(
    cli: Cli, queue: Queue, tmp_path: Path, option: str, through: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = through.format(shlex.join([*COMMAND, "publish", option]))
    done = subprocess.run(
        ["bash", "-c", f"yes | tr -d '\\n' {command}"],
        cwd=tmp_path,
        env=cli.environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 2, done.stderr
    assert "more than" in done.stderr
    assert payloads(queue) == []


def test_what_is_as_large_as_allowed_is_published(cli: Cli, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"x" * (1024 * 1024))
    cli.run("publish", "--file", str(file), "--as", "bytes")
    file.write_bytes(b"x" * (1024 * 1024 + 1))
    cli.run("publish", "--file", str(file), "--as", "bytes", code=2)
    # A line that is too long, among others, is a bad one; and one in JSON may be longer.
    escaped = json.dumps({"payload": "\1" * 1_000_000})
    lines = [escaped, json.dumps({"payload": "y" * 2_000_000}), '{"payload": "last"}']
    file.write_text("\n".join(lines))
    done = cli.run("publish", "--lines", str(file), "--as", "message", code=1)
    assert "2 published, 1 bad lines skipped" in done.stderr
    assert [len(message.payload) for message in queue.claim(9)] == [1024 * 1024, 1_000_000, 4]
