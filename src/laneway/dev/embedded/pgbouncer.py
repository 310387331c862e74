"""PgBouncer in transaction mode, for tests and chaos: installed here, or fetched without root."""

import logging
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from .mariadb import packages_lock
from .server import free_port, server_account

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "laneway/pgbouncer"
_START_TIMEOUT = 10  # seconds

_CONFIG = """
[databases]
* = host={host} port={port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
server_login_retry = 1
logfile = {log}
"""


class PgBouncer:
    """PgBouncer in front of ``host:port``, on a free loopback port, any user let in as postgres.

    >>> with PgBouncer(binary, "127.0.0.1", server.port) as bouncer:
    ...     psycopg.connect(bouncer.url("orders"))
    """

    def __init__(self, binary: Path, host: str, port: int, *, pool_size: int = 20) -> None:
        self._binary = binary
        self._target = (host, port)
        self._pool_size = pool_size
        self.port = 0

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="laneway-pgb-", dir="/tmp"))
        self.port = free_port()
        self._log = self._folder / "pgbouncer.log"
        try:
            self._write_files()
            self._process = self._start()
            self._wait_until_it_listens()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()  # it keeps no state, and its polite signals differ between versions
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_files(self) -> None:
        # A copy beside the configuration: the checkout may be closed to the account it runs as.
        for file in (self._binary, *self._binary.parent.glob("lib*.so.*")):
            shutil.copy(file, self._folder)
        host, port = self._target
        (self._folder / "pgbouncer.ini").write_text(
            _CONFIG.format(
                host=host,
                port=port,
                listen_port=self.port,
                pool_size=self._pool_size,
                log=self._log,
            )
        )
        if account := server_account():
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)

    def _start(self) -> subprocess.Popen[bytes]:
        account = server_account()
        return subprocess.Popen(
            [self._folder / self._binary.name, "-q", self._folder / "pgbouncer.ini"],
            cwd=self._folder,
            env={**os.environ, "LD_LIBRARY_PATH": str(self._folder)},
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        log = self._log.read_text() if self._log.exists() else "(no log)"
        raise RuntimeError(f"pgbouncer did not start:\n{log}")


def pgbouncer_binary() -> Path | None:
    """A PgBouncer that runs here, or None with a logged warning that says why."""
    installed = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if installed:
        return Path(installed)
    try:
        return _cached_binary()
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        detail = getattr(error, "stderr", None) or error
        # Not warnings.warn: pytest turns that into an error, and the tests want to skip.
        logging.getLogger(__name__).warning("pgbouncer cannot be had here: %s", detail)
        return None


def _cached_binary() -> Path:
    binary = _CACHE / "pgbouncer"
    with packages_lock():
        if not binary.exists():
            _fill_cache()
    return binary


def _fill_cache() -> None:
    _CACHE.parent.mkdir(parents=True, exist_ok=True)
    # Filled aside and renamed, so a run that is killed halfway leaves no half cache.
    with tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder:
        _fetch(Path(folder) / "new")
        shutil.rmtree(_CACHE, ignore_errors=True)
        (Path(folder) / "new").rename(_CACHE)


def _fetch(target: Path) -> None:
    """The Debian package's binary, and the libraries this machine lacks, in one flat folder."""
    if os.geteuid() == 0 and not list(Path("/var/lib/apt/lists").glob("*_Packages*")):
        _run("apt-get", "update")
    target.mkdir()
    unpacked = _unpack("pgbouncer", target.with_name("program"))
    shutil.copy(unpacked / "usr/sbin/pgbouncer", target)
    if not _missing_libraries(target):
        return
    for package in _library_packages():
        for library in _unpack(package, target.with_name(package)).rglob("lib*.so.*"):
            if not (target / library.name).exists():
                shutil.copy(library, target)  # follows the links: the soname is what counts
    if missing := _missing_libraries(target):
        raise RuntimeError(f"libraries missing: {', '.join(missing)}")


def _unpack(package: str, folder: Path) -> Path:
    folder.mkdir()
    _run("apt-get", "download", package, cwd=folder)
    (archive,) = folder.glob("*.deb")
    _run("dpkg-deb", "-x", str(archive), str(folder))
    return folder


def _library_packages() -> list[str]:
    """The libraries PgBouncer depends on that are not installed here."""
    depends = re.findall(r"Depends: (lib\S+)", _run("apt-cache", "depends", "pgbouncer"))
    return [name for name in depends if not _is_installed(name)]


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout == "installed"


def _missing_libraries(folder: Path) -> list[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    listing = _run("ldd", str(folder / "pgbouncer"), env=environment)
    return re.findall(r"(\S+) => not found", listing)


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    return subprocess.run(
        command, cwd=cwd, env=env, check=True, capture_output=True, text=True, timeout=120
    ).stdout
