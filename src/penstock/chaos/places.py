"""Where a run takes place: a server of its own, a file of its own, or a database that was named."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from penstock.embedded import EmbeddedPostgres, Setting
from penstock.embedded_mariadb import OwnMariaDB, find_mariadb
from penstock.errors import InvalidOption

ENGINES = ("postgresql", "sqlite", "mariadb")


class Server(Protocol):
    """A server that may be killed, because it was started here."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass(frozen=True)
class Place:
    """``server`` is None where nothing may be killed; ``one_writer`` where a stopped process can
    hold all others up."""

    engine: str
    url: str
    server: Server | None = None
    one_writer: bool = False

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def through(self, port: int) -> str:
        """The same database by another port of this machine."""
        parts = urlsplit(self.url)
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}"))


@contextmanager
def open_place(engine: str, url: str | None = None) -> Iterator[Place]:
    """Everything that was started for it is gone at its end."""
    if url is not None:
        yield given_place(url)
    elif engine == "postgresql":
        # A lost fsync cannot be seen by killing processes, only by cutting the power.
        settings: dict[str, Setting] = {
            "fsync": False,
            "lock_timeout": "2s",
        }
        with EmbeddedPostgres(settings=settings) as postgres:
            yield Place(engine, postgres.create_database("chaos"), postgres)
    elif engine == "sqlite":
        with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as folder:
            yield Place(engine, f"sqlite:///{Path(folder) / 'chaos.db'}", one_writer=True)
    elif engine == "mariadb":
        if find_mariadb() is None:
            raise InvalidOption("no mariadbd is installed here: on Debian, mariadb-server has it")
        with OwnMariaDB() as mariadb:
            yield Place(engine, mariadb.create_database("chaos"), mariadb)
    else:
        raise InvalidOption(f"the engine is {engine!r}: use one of {', '.join(ENGINES)}")


def given_place(url: str) -> Place:
    scheme = urlsplit(url).scheme.split("+")[0]
    engine = {"postgres": "postgresql", "mysql": "mariadb"}.get(scheme, scheme)
    if engine not in ENGINES:
        raise InvalidOption(f"{scheme}:// is no database that chaos can run on")
    return Place(engine, url, one_writer=engine == "sqlite")
