"""Where a run takes place: a server of its own, a file of its own, or a database that was named."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from penstock.embedded import EmbeddedPostgres, Setting
from penstock.embedded_mariadb import OwnMariaDB, find_mariadb
from penstock.errors import InvalidOption

from .disk import SmallDisk
from .replica import Pair

ENGINES = ("postgresql", "sqlite", "mariadb")


class Server(Protocol):
    """A server that may be killed, because it was started here."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass(frozen=True)
class Place:
    """``server`` is None where nothing may be killed; ``one_writer`` where a stopped process can
    hold all others up; ``own`` says that nobody else is there to be held up; ``disk`` is where its
    data is, if that can be filled; ``pair`` the server and its replica, if there is one."""

    engine: str
    url: str
    server: Server | None = None
    one_writer: bool = False
    own: bool = True
    disk: SmallDisk | None = None
    pair: Pair | None = None

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def through(self, port: int) -> str:
        """The same database by another port of this machine."""
        parts = urlsplit(self.url)
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))

    def faults(self) -> list[str]:
        """What can go wrong here."""
        kinds = ["poison", "kill", "stop", "term"]
        if self.server is not None:
            kinds += ["cut", "server"]
        if self.own:
            kinds += ["snapshot", "lock"]
        return kinds + ["disk"] * bool(self.disk) + ["promote"] * bool(self.pair)


# A lost fsync cannot be seen by killing processes, only by cutting the power.
_POSTGRESQL: dict[str, Setting] = {"fsync": False, "lock_timeout": "2s", "max_wal_size": "64MB"}


@contextmanager
def open_place(
    engine: str, url: str | None = None, faults: Sequence[str] | None = None
) -> Iterator[Place]:
    """Everything that was started for it is gone at its end. A small disk and a replica are there
    only if their ``faults`` are asked for."""
    wanted = faults or ()
    with ExitStack() as stack:
        if url is not None:
            place = given_place(url)
        elif engine == "postgresql":
            place = _own_postgresql(stack, "disk" in wanted, "promote" in wanted)
        elif engine == "sqlite":
            place = _own_sqlite(stack, "disk" in wanted)
        elif engine == "mariadb":
            place = _own_mariadb(stack)
        else:
            raise InvalidOption(f"the engine is {engine!r}: use one of {', '.join(ENGINES)}")
        for kind in set(wanted) - set(place.faults()):
            raise InvalidOption(f"{kind!r} cannot go wrong here: {', '.join(place.faults())} can")
        yield place


def _own_postgresql(stack: ExitStack, small: bool, paired: bool) -> Place:
    disk = stack.enter_context(SmallDisk()) if small else None
    directory = None if disk is None else disk.folder / "postgresql"
    server = stack.enter_context(EmbeddedPostgres(directory, settings=_POSTGRESQL))
    url = server.create_database("chaos")
    pair = stack.enter_context(Pair(server)) if paired else None
    return Place("postgresql", url, pair or server, disk=disk, pair=pair)


def _own_sqlite(stack: ExitStack, small: bool) -> Place:
    disk = stack.enter_context(SmallDisk()) if small else None
    root = None if disk is None else disk.folder
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-chaos-", dir=root))
    return Place("sqlite", f"sqlite:///{Path(folder) / 'chaos.db'}", one_writer=True, disk=disk)


def _own_mariadb(stack: ExitStack) -> Place:
    if find_mariadb() is None:
        raise InvalidOption("no mariadbd is installed here: on Debian, mariadb-server has it")
    server = stack.enter_context(OwnMariaDB(settings={"innodb_lock_wait_timeout": 2}))
    return Place("mariadb", server.create_database("chaos"), server)


def given_place(url: str) -> Place:
    scheme = urlsplit(url).scheme.split("+")[0]
    engine = {"postgres": "postgresql", "mysql": "mariadb"}.get(scheme, scheme)
    if engine not in ENGINES:
        raise InvalidOption(f"{scheme}:// is no database that chaos can run on")
    return Place(engine, url, one_writer=engine == "sqlite", own=False)
