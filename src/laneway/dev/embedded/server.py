"""What the embedded servers share: folder, lock, port, and the account they run as."""

import atexit
import fcntl
import os
import pwd
import random
import shutil
import socket
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

Setting = str | int | float | bool

# A folder younger than this may belong to a run that has not taken its lock yet.
_ORPHAN_AGE = 60


class EmbeddedServerError(RuntimeError):
    """The server could not be found, started or stopped; the text ends with its log."""


class DirectoryInUse(EmbeddedServerError):
    """Another process runs the server of this folder."""


class EmbeddedServer(ABC):
    """A server on 127.0.0.1 that stops with the block or the process that started it.

    Without ``directory`` its data is temporary and removed by :meth:`close`. A given directory is
    kept together with the port, and only one process at a time may use it.
    """

    replaced_port: int | None = None
    """The port of earlier starts, if another program had taken it at this start."""

    def __init__(self, directory: str | Path | None = None, *, port: int | None = None) -> None:
        self._owner = os.getpid()
        self._given = Path(directory).resolve() if directory is not None else None
        self._directory: Path | None = None
        self._lock = -1
        self._wanted_port = port
        self.port = 0

    @property
    def directory(self) -> Path:
        """Holds the data, the log and the lock; known once the server was started."""
        if self._directory is None:
            raise EmbeddedServerError("the embedded server was not started: call start() first")
        return self._directory

    @abstractmethod
    def url(self, database: str = ...) -> str: ...

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_directory(self, prefix: str, temporary: Path) -> None:
        """Makes the folder, gives it to the server's account and locks it."""
        directory = self._given or Path(tempfile.mkdtemp(prefix=prefix, dir=temporary))
        directory.mkdir(parents=True, exist_ok=True)
        if not is_reachable(directory.parent):
            raise EmbeddedServerError(
                f"the server runs as nobody, who cannot reach {directory}: "
                "choose a folder whose parents are open to all, for instance under /var/tmp"
            )
        hand_over(directory)
        self._lock = take_lock(directory)
        self._directory = directory
        atexit.register(self._close_at_exit)

    def _fixed_port(self) -> int:
        """The port to use whatever happens, or 0 if any free one will do."""
        if self.port:
            return self.port
        if self._wanted_port is not None:
            if not is_free(self._wanted_port):
                raise EmbeddedServerError(
                    f"port {self._wanted_port} is in use by another program: "
                    "stop that program or choose another port"
                )
            return self._wanted_port
        remembered = self._given and remembered_port(self._given)
        if remembered and not is_free(remembered):
            self.replaced_port = remembered
            return 0
        return remembered or 0

    def _remember_port(self) -> None:
        if self._given is None:
            return
        file = self._given / "port"
        file.unlink(missing_ok=True)  # the folder is the server's, who could have put a link there
        with file.open("x") as new:
            new.write(f"{self.port}\n")

    def _close_at_exit(self) -> None:
        # A forked child inherits the exit handlers, but the server is not its to stop.
        if os.getpid() == self._owner:
            self.close()


def remembered_port(directory: Path) -> int | None:
    """The port of the last start in this folder."""
    with suppress(OSError, ValueError):
        port = int((directory / "port").read_text())
        return port if 0 < port < 65_536 else None
    return None


def is_free(port: int) -> bool:
    """Whether nobody listens on this loopback port."""
    with socket.socket() as probe:
        # As the servers do: connections that were closed a moment ago do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A loopback port nobody listens on.

    Taken from below the range the kernel gives to outgoing connections: in that range a client
    that retries while the server is down can end up connected to itself.
    """
    for port in random.sample(range(15_000, 32_000), k=200):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise EmbeddedServerError("no free port found on 127.0.0.1")


def server_account() -> pwd.struct_passwd | None:
    """Whom to run a server as: nobody if we are root, which servers refuse; else ourselves.

    Not ``postgres``, who may own a real cluster here: our superuser is open to every local user
    and can run programs.
    """
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def is_reachable(path: Path) -> bool:
    """Whether the account the server runs as may enter every folder down to ``path``."""
    account = server_account()
    if account is None:
        return True
    return all(
        folder.stat().st_uid == account.pw_uid or folder.stat().st_mode & stat.S_IXOTH
        for folder in (path, *path.parents)
    )


def hand_over(directory: Path) -> None:
    """Makes the server's account the owner of a folder."""
    if account := server_account():
        os.chown(directory, account.pw_uid, account.pw_gid)


def remove_orphans(temporary: Path, prefix: str, kill: Callable[[Path], None]) -> None:
    """Ends the temporary servers of runs that were killed, whose lock nobody holds. ``kill`` ends
    all processes of the server of a folder."""
    account = server_account()
    owner = account.pw_uid if account else os.geteuid()
    for lock_file in temporary.glob(f"{prefix}*/lock"):
        with suppress(OSError, EmbeddedServerError):
            found = lock_file.parent.stat()
            if found.st_uid == owner and time.time() - found.st_mtime > _ORPHAN_AGE:
                lock = take_lock(lock_file.parent)
                kill(lock_file.parent)
                shutil.rmtree(lock_file.parent, ignore_errors=True)
                os.close(lock)


def take_lock(directory: Path) -> int:
    """Marks the folder as in use until this process ends, however it ends."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise DirectoryInUse(f"{directory} is in use by another process") from error
    return lock
