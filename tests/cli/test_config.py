"""Where the database is: options, the environment, laneway.toml, pyproject.toml."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from laneway import Queue
from laneway.cli.app import app
from laneway.cli.connect import Config, read_config
from laneway.errors import InvalidOption
from tests.cli.commands import Cli


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, list(words), env=environment)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path


def test_the_nearest_file_counts(folder: Path) -> None:
    assert read_config(folder) == Config()
    (folder / "pyproject.toml").write_text('[tool.laneway]\nurl = "u"\nqueue = "q"\n')
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text('[tool.other]\nurl = "no"\n')
    assert read_config(below) == Config("u", "laneway", "q")
    (folder / "a" / "laneway.toml").write_text('url = "v"\nschema = "s"\npooler = true\n')
    assert read_config(below) == Config("v", "s", "default", True)


@pytest.mark.parametrize("text", ["url = 'me:canary' x", "uri = 'canary'", "url = 7", "pooler = 1"])
def test_a_bad_file_is_named_and_its_values_are_not_shown(folder: Path, text: str) -> None:
    (folder / "laneway.toml").write_text(text)
    with pytest.raises(InvalidOption) as caught:
        read_config()
    assert "laneway.toml" in str(caught.value) and "canary" not in str(caught.value)
    assert run("stats").exit_code == 2


@pytest.mark.parametrize("name", ["laneway.toml", "pyproject.toml"])
def test_a_folder_is_no_file(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    done = run("stats")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"laneway: {folder / name} cannot be read: Is a directory")


@pytest.mark.parametrize("url", ["sqlite:jobs.db", "sqlite:/jobs.db", "sqlite:"])
def test_a_file_without_its_slashes(folder: Path, url: str) -> None:
    done = run("install", "--url", url)
    assert done.exit_code == 2 and list(folder.iterdir()) == []
    assert "write sqlite:///relative.db or sqlite:////absolute.db" in done.stderr


def test_a_url_that_is_no_text() -> None:
    done = run("stats", "--url", "postgresql://127.0.0.1:1/\udcff")
    assert done.exit_code == 2 and "the database URL is not UTF-8" in done.stderr


def test_a_file_is_enough(folder: Path, cli: Cli, queue: Queue) -> None:
    lines = [f'url = "{cli.url}"', f'schema = "{cli.schema}"', 'queue = "emails"']
    (folder / "laneway.toml").write_text("\n".join(lines))
    assert run("publish", "1").exit_code == 0
    assert [n.queue for n in queue.stats()] == ["emails"]
    assert run("channels", "pause", "default").exit_code == 0
    assert queue.channel("default", queue="emails").policy().paused


def test_options_come_before_the_environment_before_the_file(folder: Path, cli: Cli) -> None:
    wrong = "postgresql://127.0.0.1:1/none"
    (folder / "laneway.toml").write_text(f'url = "{wrong}"\nschema = "{cli.schema}"\n')
    assert run("stats").exit_code == 1
    assert run("stats", DATABASE_URL=cli.url).exit_code == 0
    assert run("stats", "--url", cli.url, DATABASE_URL=wrong).exit_code == 0
    assert run("stats", "--url", cli.url, "--schema", "none").exit_code == 1


@pytest.mark.parametrize("kind", ["fifo", "device", "large"])
def test_a_file_without_an_end_is_not_read(folder: Path, kind: str) -> None:
    file = folder / "laneway.toml"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.write_text("#" * 2_000_000)
    with pytest.raises(InvalidOption, match="rename or remove it"):
        read_config(folder)
