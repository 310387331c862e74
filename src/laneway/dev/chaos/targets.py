"""Where a run takes place: a server or a file of its own, or an existing database.

A disk small enough to fill: a tmpfs, which only root may mount.

A PostgreSQL server and its synchronous replica, which can take over.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import urlsplit, urlunsplit

from laneway.dev.embedded import (
    EmbeddedMariaDB,
    EmbeddedPostgres,
    EmbeddedServerError,
    Setting,
    find_mariadb,
    server_account,
)
from laneway.drivers.choice import driver_of
from laneway.drivers.database_url import dialect_url
from laneway.errors import InvalidOption

CATCH_UP_TIMEOUT = 30.0  # seconds


class Replica(EmbeddedPostgres):
    """Starts as a copy of another server and replicates it."""

    def __init__(self, primary: EmbeddedPostgres) -> None:
        super().__init__(settings={**primary.settings, "wal_retrieve_retry_interval": "200ms"})
        self._primary = primary

    def _initialise(self) -> None:
        where = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        how = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]
        self._server_command("pg_basebackup", *where, *how, "-D", str(self.data))

    def promote(self) -> None:
        self._server_command("pg_ctl", "promote", "-w", "-D", str(self.data))


class Pair:
    """A commit is acknowledged when both have it. ``kill`` and ``start`` act on the current
    primary; a second promotion does nothing."""

    def __init__(self, primary: EmbeddedPostgres) -> None:
        self._primary = primary
        self._replica = Replica(primary)
        self._promoted = False

    def __enter__(self) -> Self:
        self._replica.start()
        self._primary.settings["synchronous_standby_names"] = "*"
        self._primary.restart()
        self._wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._replica.close()

    def kill(self) -> None:
        self._current.kill()

    def start(self) -> None:
        self._current.start()

    def promote(self) -> int:
        """Returns the port of the new primary."""
        if not self._promoted:
            self._primary.kill()
            self._replica.promote()
            self._promoted = True
        return self._current.port

    @property
    def _current(self) -> EmbeddedPostgres:
        return self._replica if self._promoted else self._primary

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + CATCH_UP_TIMEOUT
        while time.monotonic() < deadline:
            with psycopg.connect(self._primary.url(), autocommit=True) as connection:
                found = connection.execute(
                    "select from pg_stat_replication where sync_state = 'sync'"
                ).fetchall()
            if found:
                return
            time.sleep(0.1)
        raise EmbeddedServerError("the replica did not become synchronous")


MEBIBYTES = 400


class SmallDisk:
    """``fill`` uses the last byte, ``empty`` removes what filled it."""

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            raise InvalidOption(
                "the disk fault needs a small tmpfs, which only root may mount: run it as root"
            )
        self.folder = Path(tempfile.mkdtemp(prefix="laneway-disk-", dir="/tmp"))
        options = f"size={MEBIBYTES}m,mode=755"
        command = ["mount", "-t", "tmpfs", "-o", options, "laneway-chaos", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.folder.rmdir()
            raise InvalidOption(f"no tmpfs could be mounted here: {done.stderr.strip()}")
        if account := server_account():
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Lazily: a process that is about to end may still have it as its working directory.
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)
        with suppress(OSError):
            self.folder.rmdir()

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        block = bytes(1 << 16)
        with open(self._ballast, "wb", buffering=0) as file:
            while True:
                try:
                    file.write(block)
                except OSError:
                    return

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)


ENGINES = ("postgresql", "sqlite", "mariadb")


class KillableServer(Protocol):
    """A server that may be killed, because it was started here."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass(frozen=True)
class RunTarget:
    """``server`` is None where nothing may be killed; ``single_writer``: a stopped process can
    block all others; ``own``: nobody else uses the database; ``disk`` holds its data, if it can be
    filled; ``pair`` is the server and its replica, if there is one."""

    engine: str
    url: str
    server: KillableServer | None = None
    single_writer: bool = False
    own: bool = True
    disk: SmallDisk | None = None
    pair: Pair | None = None

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def through(self, port: int) -> str:
        """The URL of the same database through another local port."""
        parts = urlsplit(self.url)
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))

    def faults(self) -> list[str]:
        """The faults that are possible here."""
        kinds = ["poison", "kill", "stop", "term"]
        if self.server is not None:
            kinds += ["cut", "silent", "idle", "server"]
        if self.own:
            kinds += ["snapshot", "lock"]
        return kinds + ["disk"] * bool(self.disk) + ["promote"] * bool(self.pair)


# A lost fsync cannot be seen by killing processes, only by cutting the power.
_POSTGRESQL: dict[str, Setting] = {"fsync": False, "lock_timeout": "2s", "max_wal_size": "64MB"}


@contextmanager
def open_target(
    engine: str, url: str | None = None, faults: Sequence[str] | None = None
) -> Iterator[RunTarget]:
    """Stops and removes what it started at the end. A small disk and a replica are created only if
    their ``faults`` are asked for."""
    wanted = faults or ()
    with ExitStack() as stack:
        if url is not None:
            target = existing_target(url)
        elif engine == "postgresql":
            target = _own_postgresql(stack, "disk" in wanted, "promote" in wanted)
        elif engine == "sqlite":
            target = _own_sqlite(stack, "disk" in wanted)
        elif engine == "mariadb":
            target = _own_mariadb(stack)
        else:
            raise InvalidOption(f"unknown engine {engine!r}: use {', '.join(ENGINES)}")
        for kind in set(wanted) - set(target.faults()):
            raise InvalidOption(
                f"fault {kind!r} is not possible here: choose among {', '.join(target.faults())}"
            )
        yield target


def _own_postgresql(stack: ExitStack, small: bool, paired: bool) -> RunTarget:
    disk = stack.enter_context(SmallDisk()) if small else None
    directory = None if disk is None else disk.folder / "postgresql"
    server = stack.enter_context(EmbeddedPostgres(directory, settings=_POSTGRESQL))
    url = server.create_database("chaos")
    pair = stack.enter_context(Pair(server)) if paired else None
    return RunTarget("postgresql", url, pair or server, disk=disk, pair=pair)


def _own_sqlite(stack: ExitStack, small: bool) -> RunTarget:
    disk = stack.enter_context(SmallDisk()) if small else None
    root = None if disk is None else disk.folder
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="laneway-chaos-", dir=root))
    return RunTarget(
        "sqlite", f"sqlite:///{Path(folder) / 'chaos.db'}", single_writer=True, disk=disk
    )


def _own_mariadb(stack: ExitStack) -> RunTarget:
    if find_mariadb() is None:
        raise InvalidOption("MariaDB is not installed: on Debian, apt-get install mariadb-server")
    server = stack.enter_context(EmbeddedMariaDB(settings={"innodb_lock_wait_timeout": 2}))
    return RunTarget("mariadb", server.create_database("chaos"), server)


def existing_target(url: str) -> RunTarget:
    dialect = driver_of(url).dialect
    engine = "mariadb" if dialect == "mysql" else dialect
    return RunTarget(engine, dialect_url(url), single_writer=engine == "sqlite", own=False)
