"""What every command shares: a quick start, exit codes, pipes, secrets."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from laneway import Queue
from laneway.cli.app import app
from tests.cli.commands import COMMAND, Cli

_LAZY = {"rich", "psycopg", "asyncpg", "msgspec", "asyncio", "tomllib", "sqlalchemy"}
_ROOT = Path(__file__).parents[2]
_GROUPS = {"channels", "dead", "schedules", "topics"}
_NAMES = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
_NAMES |= _GROUPS
_LAZY_PARTS = {"laneway.client", "laneway.engines", "laneway.drivers", "laneway.model"}


def _run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, **environment}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize("words", [["--help"], ["dead", "--help"], ["publish", "--help"]])
def test_help_loads_no_driver_no_client_and_no_rich(words: list[str]) -> None:
    look = (
        "import sys\nfrom laneway.cli import main\nsys.argv = ['laneway', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, *words], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "typer" in loaded
    assert loaded & (_LAZY | _LAZY_PARTS) == set()


def test_every_command_has_help() -> None:
    listed = CliRunner().invoke(app, ["--help"]).stdout.partition("Set up and work:")[2]
    assert all(f"\n{title}:\n" in listed for title in ("See what happens", "Operate", "Develop"))
    assert "..." not in listed, "a summary that is cut off"
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")][:-2]
    assert {"install", "publish", "messages", "show", "channels", "dead", "doctor"} <= set(names)
    for name in names:
        done = CliRunner().invoke(app, [name, "--help"])
        assert done.exit_code == 0 and "Usage: " in done.stdout, name


def test_every_command_that_answers_has_json() -> None:
    without = {words for words, command in _leaves(get_command(app)) if not _has_json(command)}
    assert without == {"sql", "demo", "dashboard", "dev postgresql", "dev mariadb"}


def _leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield path.strip(), command
        return
    for name, child in below.items():
        yield from _leaves(child, f"{path} {name}")


def _has_json(command: Any) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_completion_is_offered() -> None:
    done = _run("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0 and "_LANEWAY_COMPLETE" in done.stdout


def test_wrong_usage() -> None:
    for words in (["nonsense"], ["stats", "--nonsense"], ["show"]):
        done = _run(*words)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("laneway: ") and done.stderr.count("\n") == 1


def test_no_schema_is_one_sentence(cli: Cli) -> None:
    done = Cli(cli.url, "nowhere").run("stats", code=1)
    assert done.stdout == "" and done.stderr.startswith("laneway: ") and "install" in done.stderr


@pytest.mark.repeats("tests/security has canaries; this one starts twelve processes")
def test_the_password_is_shown_nowhere(tmp_path: Path) -> None:
    url = "postgresql://me:canary@127.0.0.1:1/none?password=canary"
    for words in (
        *(["install"], ["stats"], ["publish", "1"], ["messages"], ["show", "1"], ["tail"]),
        *(["dead"], ["channels"], ["top", "--once"], ["doctor"], ["bench", "--yes"], ["bench"]),
    ):
        done = _run(*words, DATABASE_URL=url)
        assert done.returncode in (1, 2), words
        assert "canary" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_reader_that_has_enough(cli: Cli, queue: Queue) -> None:
    queue.publish_many(list(range(5000)))
    with cli.process("messages", "-n", "5000", "--json", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode in (0, 1)
    assert "Traceback" not in errors and "BrokenPipe" not in errors


def test_without_the_extra_it_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = _run("--help", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and 'pip install "laneway[cli]"' in done.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/reference/cli.md", "docs/how-to/operate.md"])
def test_commands_in_the_documentation_exist(page: str) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", (_ROOT / page).read_text(), re.M | re.S)
    typed = re.findall(r"(?:^|\| )laneway ([a-z]+)(?: ([a-z]+))?", "\n".join(blocks), re.M)
    assert len(typed) >= 3
    for name, verb in typed:
        path = [name, verb] if name in _GROUPS and verb else [name]
        assert CliRunner().invoke(app, [*path, "--help"]).exit_code == 0, path


def test_the_reference_names_every_command() -> None:
    text = (_ROOT / "docs/reference/cli.md").read_text()
    for name in _NAMES:
        assert re.search(rf"`{name}[ `]", text), name
