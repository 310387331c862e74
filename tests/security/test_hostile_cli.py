"""The command line with hostile names and payloads: its output is valid JSON, or harmless text."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from laneway import Queue
from laneway.cli.app import app
from tests.cli.commands import Cli

HOSTILE = "\x1b[31m\x1b]0;owned\x07\x9b2J\u202ea\r\nb\t\x7f'\"`%s$(touch x)\\"
DEEP = b"[" * 500 + b"]" * 500
# Valid JSON, and still nothing that UTF-8 can hold.
HALF = b'{"a": "\\ud800", "b": 1e999, "c": ' + b"9" * 5000 + b"}"
NAMES: dict[str, Any] = {"channel": HOSTILE, "queue": HOSTILE, "kind": HOSTILE}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    url = f"sqlite:///{tmp_path / 'hostile.db'}"
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.publish({"x": HOSTILE}, key=HOSTILE, headers={HOSTILE: HOSTILE}, **NAMES)  # id 1
        queue.publish(HOSTILE, **NAMES)
        queue.publish(DEEP, content_type="application/json", **NAMES)
        queue.publish(HALF, content_type="application/json", **NAMES)
        queue.publish(b"\xff\xfe\x1b[31m", content_type="text/plain", **NAMES)
        queue.publish("dead", **NAMES)
        for message in queue.claim(100, queues=[HOSTILE]):
            if message.payload == b"dead":
                message.fail(HOSTILE, error=ValueError(HOSTILE))
            else:
                message.give_back()
        queue.channel(HOSTILE, queue=HOSTILE).limit(concurrency=2)
        queue.schedule(HOSTILE, every=timedelta(days=1), **NAMES)
        queue.topic(HOSTILE).subscribe(HOSTILE, channel=HOSTILE, kind=HOSTILE)
    return Cli(url, "laneway")


LISTING = [
    ["messages"],
    *(["show", str(number)] for number in range(1, 7)),
    ["history", "6"],
    ["channels"],
    ["dead"],
    ["schedules"],
    ["topics"],
    ["stats"],
    ["top", "--once"],
    ["doctor"],
    ["wait", "6"],
]
ACTING = [
    ["publish", json.dumps(HOSTILE), "--channel", HOSTILE, "--queue", HOSTILE, "--key", "k"],
    ["publish", "{", "--channel", HOSTILE],
    ["publish", "1", "--channel", "x" * 300],
    ["channels", "limit", HOSTILE, "--queue", HOSTILE, "--concurrency", "1"],
    ["channels", "pause", HOSTILE, "--queue", HOSTILE],
    ["channels", "resume", HOSTILE, "--queue", HOSTILE],
    ["dead", "redrive", "--queue", HOSTILE, "--yes"],
    ["topics", "subscribe", HOSTILE, "--queue", HOSTILE],
    ["topics", "unsubscribe", HOSTILE, "--queue", HOSTILE],
    ["schedules", "pause", HOSTILE, "--queue", HOSTILE],
    ["schedules", "remove", HOSTILE, "--queue", HOSTILE, "--yes"],
    ["cancel", "1", "--yes"],
    ["show", "1", "--url", "sqlite://u:canary@host/x"],
]


def harmless(text: str) -> None:
    for line in text.split("\n"):
        assert line.replace("\t", "").isprintable(), ascii(line)


@pytest.mark.repeats("a process for each word; terminals are in make test")
@pytest.mark.parametrize("words", [*LISTING, *ACTING], ids=lambda words: " ".join(words[:2]))
def test_nothing_raw_reaches_a_terminal_and_json_stays_json(cli: Cli, words: list[str]) -> None:
    for more in ([], ["--json"]):
        done = CliRunner().invoke(app, [*words, *more], env=cli.place())
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        harmless(done.stdout)
        harmless(done.stderr)
        assert "canary" not in done.stdout + done.stderr
        if more:
            for line in done.stdout.splitlines():
                json.loads(line)


def test_a_terminal_sees_no_escape_but_those_of_the_tables(cli: Cli) -> None:
    _, seen = cli.terminal("messages", columns=200)
    assert "]0;owned" in seen and "\x1b]0;" not in seen and "\x9b" not in seen


@pytest.mark.repeats("a process for each word; terminals are in make test")
@pytest.mark.parametrize(
    "line",
    [
        b"[" * 1_000_000,
        b"\xff\xfe",
        b'{"payload": 1, "channel": "a\\u0000b"}',
        b'{"payload": 1, "delay": "-5s"}',
        b'{"payload": 1, "at": "99999-01-01"}',
        b'{"payload": 1, "priority": ' + b"9" * 5000 + b"}",
        b'{"payload": 1, "__class__": "os.system"}',
        b'{"payload": NaN}',
    ],
)
def test_a_bad_line_is_named_and_the_others_are_published(cli: Cli, line: bytes) -> None:
    words = ("publish", "--lines", "-", "--as", "message", "--queue", "lines")
    good = b'{"payload": 1}\n'
    done = cli.run(*words, input=good + line + b"\n" + good, code=1)
    harmless(done.stderr)
    assert len(done.stderr) < 2000
    with Queue(cli.url, upkeep_every=None) as queue:
        assert [m.json() for m in queue.claim(10, queues=["lines"])] == [1, 1]
