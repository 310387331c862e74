"""stdin, stdout and stderr that are closed, full, or lack a character."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from laneway import Queue
from tests.cli.commands import COMMAND, Cli


def redirected(
    cli: Cli, where: str, *words: str, **more: str
) -> "subprocess.CompletedProcess[Any]":
    """The command with a shell's redirection behind it."""
    line = f'exec "$@" {where}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *words],
        env=cli.environment() | more,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("where", [">&-", "> /dev/full"])
@pytest.mark.parametrize("words", [["stats"], ["stats", "--json"], ["top", "--once"], ["--help"]])
def test_an_answer_that_cannot_be_written_is_one_sentence(
    cli: Cli, queue: Queue, where: str, words: list[str]
) -> None:
    queue.publish(1)
    done = redirected(cli, where, *words)
    assert done.returncode == 1
    errors = done.stderr.decode()
    assert errors.startswith("laneway: cannot write to stdout: "), errors
    assert errors.count("\n") == 1


def test_a_command_that_has_only_talk_needs_no_stdout(cli: Cli, queue: Queue) -> None:
    queue.publish(1, channel="a")
    done = redirected(cli, ">&-", "channels", "pause", "a")
    assert (done.returncode, done.stderr) == (0, b"Paused in queue 'default': a.\n")


def test_nobody_talks_into_a_database_file_for_a_closed_stream(tmp_path: Path) -> None:
    cli = Cli(f"sqlite:///{tmp_path}/jobs.db", "laneway")
    assert redirected(cli, "<&- >&- 2>&-", "install").returncode == 0
    assert redirected(cli, "<&- 2>&-", "publish", "1").stdout == b"1\n"
    assert redirected(cli, "<&-", "cancel", "1").returncode == 2  # nobody to ask


def test_characters_that_the_encoding_lacks_are_escaped(cli: Cli, queue: Queue) -> None:
    queue.publish(1, channel="tenänt € 🐎")
    shown = redirected(cli, "", "channels", PYTHONIOENCODING="latin-1")
    assert shown.returncode == 0, shown.stderr
    assert "tenänt \\u20ac \\ud83d\\udc0e\t1".encode("latin-1") in shown.stdout
    for encoding in ("latin-1", "cp1251"):
        answer = redirected(cli, "", "channels", "--json", PYTHONIOENCODING=encoding)
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout.decode(encoding))["channel"] == "tenänt € 🐎"


def test_a_reader_that_has_enough_learns_where_the_lines_are(
    cli: Cli, queue: Queue, tmp_path: Path
) -> None:
    file, rejects = tmp_path / "lines", tmp_path / "rejects"
    file.write_text("".join("oops\n" if n == 500 else f"{n}\n" for n in range(1, 5001)))
    words = ["publish", "--lines", str(file), "--json", "--rejects", str(rejects)]
    ours, theirs = os.pipe()
    with cli.process(*words, stdin=subprocess.DEVNULL, stdout=theirs) as process:
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)
        assert process.stderr is not None
        errors = process.stderr.read()
    assert process.returncode == 1
    published = queue.channel("default").stats().waiting
    assert f"{published:,} published, 1 bad lines skipped." in errors
    assert f"continue with --skip {published + 1}." in errors
    assert "Traceback" not in errors and "laneway: " not in errors
    assert rejects.read_text() == "oops\n"
    cli.run(*words, "--skip", str(published + 1))
    assert queue.channel("default").stats().waiting == 4999
    assert rejects.read_text() == "oops\n"
