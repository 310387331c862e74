"""The embedded server itself: versions, settings, crash and restart, leftovers."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psycopg
import pytest

from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres, EmbeddedServerError
from laneway.dev.embedded import mariadb as embedded_mariadb
from laneway.dev.embedded import postgresql as embedded
from laneway.dev.embedded.server import EmbeddedServer, is_reachable

# Starts a server, says where it is, and waits to be killed.
_VICTIM = """
import sys
from laneway.dev import embedded
server = getattr(embedded, sys.argv[1])(*sys.argv[2:])
server.start()
print(server.directory, server.port, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(settings={"work_mem": "7MB", "fsync": False}) as running:
        yield running


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Like tmp_path, which only its owner may enter: as root the server is somebody else."""
    with tempfile.TemporaryDirectory(dir=embedded._temporary_root()) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def ask(url: str, question: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(question.encode())
        while cursor.nextset():  # the last statement is the question
            pass
        row = cursor.fetchone()
    assert row is not None
    return str(row[0])


def killed_run(*arguments: str, kind: type[EmbeddedServer] = EmbeddedPostgres) -> Path:
    """The folder of a server whose owner was SIGKILLed; the server itself still runs."""
    command = [sys.executable, "-c", _VICTIM, kind.__name__, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        directory = Path(victim.stdout.readline().split()[0].decode())
        victim.send_signal(signal.SIGKILL)
    return directory


@pytest.mark.parametrize("version", [16, 18])
def test_each_version_answers(version: Literal[16, 18]) -> None:
    with EmbeddedPostgres(version=version) as server:
        assert ask(server.url(), "select version()").startswith(f"PostgreSQL {version}.")
        assert ask(server.url(), "show fsync") == "on"
        directory = server.directory
    assert not directory.exists()


def test_settings_are_applied(server: EmbeddedPostgres) -> None:
    assert ask(server.url(), "show work_mem") == "7MB"
    assert ask(server.url(), "show fsync") == "off"


def test_unix_socket_answers(server: EmbeddedPostgres) -> None:
    folder = ask(server.url(), "show unix_socket_directories")
    assert ask(f"postgresql://postgres@/postgres?host={folder}&port={server.port}", "select 1")


def test_database_names_are_quoted(server: EmbeddedPostgres) -> None:
    url = server.create_database('odd "name"/50%')
    assert ask(url, "select current_database()") == 'odd "name"/50%'


def test_kill_and_restart_keep_committed_data() -> None:
    with EmbeddedPostgres() as server:
        ask(server.url(), "create table kept as select 42 as answer; select 1")
        url = server.url()
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            ask(url, "select 1")
        server.start()
        assert ask(url, "select answer from kept") == "42"
        server.restart()
        assert ask(url, "select answer from kept") == "42"


def test_a_failed_start_shows_the_log() -> None:
    with (
        pytest.raises(EmbeddedServerError, match="shared_buffers"),
        EmbeddedPostgres(settings={"shared_buffers": "lots"}),
    ):
        pass


def test_a_long_folder_still_gets_a_socket(open_folder: Path) -> None:
    with EmbeddedPostgres(open_folder / ("long-" * 20), settings={"fsync": False}) as server:
        folder = ask(server.url(), "show unix_socket_directories")
        assert len(folder) < len(str(server.directory))
    assert not Path(folder).exists()


def test_a_given_folder_is_kept_and_has_one_owner(open_folder: Path) -> None:
    with EmbeddedPostgres(open_folder) as server:
        ask(server.url(), "create table kept (); select 1")
        with pytest.raises(EmbeddedServerError, match="in use by another process"):
            EmbeddedPostgres(open_folder).start()
    with EmbeddedPostgres(open_folder) as server:
        assert ask(server.url(), "select count(*) from kept") == "0"


def test_a_killed_run_does_not_block_its_folder(open_folder: Path) -> None:
    killed_run(str(open_folder))
    with EmbeddedPostgres(open_folder) as server:
        assert ask(server.url(), "select 1") == "1"


def test_the_next_run_removes_what_a_killed_run_left(server: EmbeddedPostgres) -> None:
    directory = killed_run()
    assert embedded._postmaster_is_alive(directory / "data")
    os.utime(directory, (0, 0))  # long ago enough to be an orphan
    with EmbeddedPostgres():
        assert not directory.exists()
        assert not embedded._server_processes(directory / "data")
    assert ask(server.url(), "select 1") == "1"


def test_the_next_run_removes_what_a_killed_run_left_of_mariadb(mariadb: EmbeddedMariaDB) -> None:
    young, old = killed_run(kind=EmbeddedMariaDB), killed_run(kind=EmbeddedMariaDB)
    assert embedded_mariadb._server_processes(old)
    os.utime(old, (0, 0))
    os.utime(mariadb.directory, (0, 0))  # old as well, but somebody holds its lock
    with EmbeddedMariaDB():
        assert not old.exists() and not embedded_mariadb._server_processes(old)
        assert young.exists() and embedded_mariadb._server_processes(young)
    mariadb.execute("select 1")
    os.utime(young, (0, 0))
    with EmbeddedMariaDB():
        assert not young.exists() and not embedded_mariadb._server_processes(young)


def test_a_private_install_is_copied_instead_of_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    package = embedded._package()
    reachable = is_reachable
    monkeypatch.setattr(
        f"{embedded.__name__}.is_reachable",
        lambda path: package not in path.parents and reachable(path),
    )
    with EmbeddedPostgres() as server:
        assert ask(server.url(), "select 1") == "1"
        assert (server.directory / "server").is_dir()


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbeddedServerError, match=r"laneway\[embedded\]"):
        EmbeddedPostgres().start()
