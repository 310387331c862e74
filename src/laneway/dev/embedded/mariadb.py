"""A MariaDB server of our own, from the system's packages, for tests, benchmarks and chaos.

``LANEWAY_MYSQL`` may name another server's program, ``mysqld`` of MySQL or a MariaDB's, which then
takes its place.

Anyone on this machine may log in as root without a password: never keep real data here.
"""

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from .server import (
    EmbeddedServer,
    EmbeddedServerError,
    Setting,
    free_port,
    hand_over,
    remove_orphans,
    server_account,
)

if TYPE_CHECKING:
    import psutil

_PREFIX = "laneway-mariadb-"
_TEMPORARY = Path("/tmp")
_PROGRAMS = ("mariadbd", "mysqld")
_TIMEOUT = 60.0  # seconds until the server must answer; a cold start takes about one
# Small and quick to start, but as durable as the default: a kill must lose nothing.
_SETTINGS: dict[str, Setting] = {
    "bind-address": "127.0.0.1",
    "skip-name-resolve": True,
    "innodb_buffer_pool_size": "128M",
    "loose-innodb_log_file_size": "96M",  # MySQL 9 has another name for it
    "loose-mysqlx": False,  # MySQL's second port
    "secure-file-priv": "",  # the folder of Debian's MySQL need not exist
    "innodb_flush_log_at_trx_commit": 1,
    "max_connections": 300,
    "performance_schema": False,
    "skip-log-bin": True,
}

# MySQL's root may come through the socket only, unless this is said.
_MYSQL_ROOT = """create user root@'127.0.0.1' identified by '';
grant all on *.* to root@'127.0.0.1' with grant option;
"""


def find_mariadb() -> str | None:
    """The server's program, if the package is installed or ``LANEWAY_MYSQL`` names one."""
    if given := os.environ.get("LANEWAY_MYSQL"):
        return shutil.which(given)
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which("mariadbd", path=search) or shutil.which("mysqld", path=search)


def is_mysql(program: str) -> bool:
    """Whether the program is MySQL's server, not MariaDB's."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return "MariaDB" not in said.stdout


def install_mariadb() -> bool:
    """Installs the Debian package, as root and if there is one; says whether the server is there.

    The package would start a server of its own, on its own data; it is told not to.
    """
    if find_mariadb():
        return True
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    with packages_lock():
        return _install_package()


@contextmanager
def packages_lock() -> Iterator[None]:
    """One process at a time asks Debian's package tools: they refuse a second one."""
    with (Path(tempfile.gettempdir()) / "laneway-packages.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install_package() -> bool:
    if find_mariadb():  # somebody else did, while we waited
        return True
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "mariadb-server"]
    for attempt in (command, ["apt-get", "update", "-qq"], command):
        done = subprocess.run(attempt, env=quiet, capture_output=True, check=False)
        if done.returncode == 0 and find_mariadb():
            return True
    return False


class EmbeddedMariaDB(EmbeddedServer):
    """One MariaDB server on 127.0.0.1.

    Without ``directory`` the data is temporary and removed by :meth:`close`. A given directory is
    kept together with the port, and only one process at a time may use it. As root the server runs
    as ``nobody``.

    >>> with EmbeddedMariaDB() as server:
    ...     url = server.create_database("orders")
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        settings: Mapping[str, Setting] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(directory, port=port)
        self.settings = {**_SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._environment: dict[str, str] = {}

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EmbeddedServerError("the server is not running: call start() first")
        return self._process.pid

    def url(self, database: str = "mysql") -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str) -> str:
        """Creates an empty database and returns its URL."""
        quoted = name.replace("`", "``")
        self.execute(f"create database `{quoted}`")
        return self.url(name)

    def execute(self, text: str) -> None:
        import pymysql

        connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root")
        with connection, connection.cursor() as cursor:
            cursor.execute(text)
            connection.commit()

    def start(self) -> None:
        """Starts the server and waits until it answers; after the first time on the same port."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._directory is None:
            self._prepare()
        self.port = self._fixed_port() or free_port()
        self._launch()
        self._remember_port()

    def stop(self) -> None:
        """Stops the server in order and keeps its data."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: what a power cut looks like to clients."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the server and removes its folder, unless the folder was given."""
        atexit.unregister(self._close_at_exit)
        if self._directory is None:
            return
        if self._given is None:
            self.kill()
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            self.stop()
        os.close(self._lock)
        self._directory = None

    def _prepare(self) -> None:
        program = find_mariadb()
        if program is None:
            raise EmbeddedServerError("no MariaDB here: apt-get install mariadb-server")
        self._program = program
        self._open_directory(_PREFIX, _TEMPORARY)
        remove_orphans(_TEMPORARY, _PREFIX, _kill_server)
        # We hold the lock, so what still runs here was left by a killed run.
        _kill_server(self.directory)
        # A server that starts sweeps its temporary folder: no other server's tables may be there.
        temporary = self.directory / "tmp"
        temporary.mkdir(exist_ok=True)
        hand_over(temporary)
        self._environment = {**os.environ, "TMPDIR": str(temporary)}
        self._initialise()

    def _initialise(self) -> None:
        """Into a side folder: a run killed halfway leaves nothing that looks like data."""
        data = self.directory / "data"
        if data.exists():
            return
        unfinished = self.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        done = subprocess.run(
            self._installing(unfinished),
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
        )
        if done.returncode:
            raise EmbeddedServerError(f"no new database:\n{done.stdout}{done.stderr}")
        unfinished.rename(data)

    def _installing(self, data: Path) -> list[str]:
        """The command that makes a new database: MySQL's server does it itself."""
        account = server_account()
        user = [f"--user={account.pw_name}"] if account else []
        common = ["--no-defaults", f"--datadir={data}", *user]
        if is_mysql(self._program):
            hand_over(self.directory)
            first = self.directory / "first-statements"
            first.write_text(_MYSQL_ROOT)
            return [self._program, *common, "--initialize-insecure", f"--init-file={first}"]
        installer = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
        if installer is None:
            raise EmbeddedServerError("mariadb-install-db is missing: reinstall mariadb-server")
        own = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
        return [installer, *common, *own]

    def _launch(self) -> None:
        account = server_account()
        options = {
            "datadir": self.directory / "data",
            "socket": self.directory / "socket",
            "pid-file": self.directory / "pid",
            "log-error": self.directory / "server.log",
            "port": self.port,
            **({"user": account.pw_name} if account else {}),
            **self.settings,
        }
        command = [self._program, "--no-defaults", *(_option(*item) for item in options.items())]
        self._process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which then stops the server
        )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            # It may listen before it has recovered, so only an answer counts.
            with suppress(Exception):
                self.execute("select 1")
                return
            time.sleep(0.05)
        raise EmbeddedServerError(f"MariaDB did not start\n{self._log_tail()}")

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        self._process.wait(_TIMEOUT)
        self._process = None

    def _log_tail(self, lines: int = 30) -> str:
        with suppress(FileNotFoundError):
            text = (self.directory / "server.log").read_text(errors="replace")
            return "\n".join(text.splitlines()[-lines:])
        return "(no server log yet)"


def _server_processes(directory: Path) -> "list[psutil.Process]":
    """A process that has ended has no cwd, even if nobody has asked for its end yet."""
    import psutil

    folders = str(directory), str(directory / "data")
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] in _PROGRAMS and process.info["cwd"] in folders
    ]


def _kill_server(directory: Path) -> None:
    import psutil

    while processes := _server_processes(directory):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.005)


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"--{name}={int(value)}" if not name.startswith("skip-") else f"--{name}"
    return f"--{name}={value}"
