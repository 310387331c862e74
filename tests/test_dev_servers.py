"""Development servers in the foreground: the same data and the same port at every start."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pymysql
import pytest

from laneway import Queue
from laneway.dev.embedded import free_port, install_mariadb
from laneway.dev.embedded.foreground import default_directory

_COMMANDS = {
    "laneway dev": ["laneway.cli", "dev", "postgresql"],
    "the module": ["laneway.dev.embedded"],
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Like tmp_path, which only its owner may enter: as root the server is somebody else."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


class Started:
    """A server as a person starts it, and what it printed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline().strip()
        assert line.startswith("export DATABASE_URL="), (line, self._rest())
        self.url = line.removeprefix("export DATABASE_URL=")

    def stop(self, number: signal.Signals = signal.SIGINT) -> str:
        """What it said on stderr; it must have stopped in good order."""
        self.process.send_signal(number)
        said = self._rest()
        assert self.process.returncode == 0, said
        return said

    def _rest(self) -> str:
        return self.process.communicate(timeout=60)[1]

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/", self.url)
        assert found is not None
        return int(found[1])


@contextmanager
def started(*words: str) -> Iterator[Started]:
    process = launched(*words)
    try:
        yield Started(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def launched(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("command", _COMMANDS)
def test_data_and_port_are_kept(folder: Path, command: str) -> None:
    words = [*_COMMANDS[command], "--directory", str(folder / "pg")]
    with started(*words) as server:
        url = server.url
        with Queue(url) as queue:
            queue.install()
            queue.publish({"order": 7}, kind="email")
        assert "data is kept" in server.stop()
    with started(*words) as server:
        assert server.url == url
        with Queue(url) as queue:
            assert [message.kind for message in queue.messages()] == ["email"]
        server.stop(signal.SIGTERM)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_ctrl_c_in_a_terminal_reaches_the_whole_group_and_stops_in_good_order(folder: Path) -> None:
    with started("laneway.dev.embedded", "--directory", str(folder / "pg")) as server:
        os.killpg(server.process.pid, signal.SIGINT)
        server.process.communicate(timeout=60)
        assert server.process.returncode == 0
    log = (folder / "pg" / "server.log").read_text()
    assert "database system is shut down" in log


def test_a_port_that_is_taken_is_replaced_and_that_is_said(folder: Path) -> None:
    words = ["laneway.dev.embedded", "--directory", str(folder / "pg")]
    with started(*words) as server:
        port = server.port
        server.stop()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with started(*words) as server:
            replaced = server.port
            said = server.stop()
        assert replaced != port
        assert f"Port {port} of the last start is in use by another program" in said
    with started(*words) as server:
        assert server.port == replaced
        assert "in use" not in server.stop()


def test_a_second_start_says_where_the_first_one_runs(folder: Path) -> None:
    words = ["laneway.dev.embedded", "--directory", str(folder / "pg")]
    with started(*words) as server:
        second = launched(*words)
        _, said = second.communicate(timeout=60)
        assert second.returncode == 1
        assert "is in use by another process" in said and server.url in said


def test_a_chosen_port(folder: Path) -> None:
    port = free_port()
    words = ["laneway.dev.embedded", "--directory", str(folder / "pg"), "--port", str(port)]
    with started(*words) as server:
        assert server.port == port
        taken = launched("laneway.dev.embedded", "--temporary", "--port", str(port))
        _, said = taken.communicate(timeout=60)
        assert taken.returncode == 1
        assert f"port {port} is in use by another program: stop that program" in said


def test_a_temporary_server_leaves_nothing() -> None:
    with started("laneway.cli", "dev", "postgresql", "--temporary") as server:
        said = server.stop()
    found = re.search(r"its data in (\S+) is deleted then", said)
    assert found is not None
    assert not Path(found[1]).exists()


@pytest.mark.repeats("PostgreSQL in the other tests here")
def test_mariadb_keeps_data_and_port_too(folder: Path) -> None:
    if not install_mariadb():
        pytest.skip("no MariaDB here")
    words = ["laneway.cli", "dev", "mariadb", "--directory", str(folder / "maria")]
    with started(*words) as server:
        url = server.url
        with Queue(url) as queue:
            queue.install()
            queue.publish({"order": 7}, kind="email")
        server.process.kill()  # the server itself goes on
        server.process.communicate(timeout=60)
    with started(*words) as server:
        assert server.url == url
        with Queue(url) as queue:
            assert [message.kind for message in queue.messages()] == ["email"]
        server.stop()
    with pytest.raises(pymysql.OperationalError):
        pymysql.connect(host="127.0.0.1", port=server.port, user="root")


def test_the_usual_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/data")
    assert default_directory("mariadb") == Path("/srv/data/laneway/mariadb")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_directory("postgresql") == Path("~/.local/share").expanduser() / (
        "laneway/postgresql"
    )
