"""stdin, stdout and stderr that are closed, full, or lack a character."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock import Queue
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
    assert errors.startswith("penstock: stdout cannot be written to: "), errors
    assert errors.count("\n") == 1


def test_a_command_that_has_only_talk_needs_no_stdout(cli: Cli, queue: Queue) -> None:
    done = redirected(cli, ">&-", "channels", "pause", "a")
    assert (done.returncode, done.stderr) == (0, b"Paused in queue 'default': a.\n")


def test_nobody_talks_into_a_database_file_for_a_closed_stream(tmp_path: Path) -> None:
    cli = Cli(f"sqlite:///{tmp_path}/jobs.db", "penstock")
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
