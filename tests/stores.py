"""The databases that tests run on: one line each, and a fixture of the same session for all."""

import os
from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Databases(Protocol):
    """What a store's fixture yields."""

    def create_database(self, name: str) -> str:
        """A new empty database, and its URL."""
        ...


class Store(NamedTuple):
    """``fixture`` starts and stops it (tests/conftest.py); ``clients`` are those of
    laneway.conformance.runner.CLIENTS that can reach it."""

    fixture: str
    clients: tuple[str, ...]


_POSTGRESQL = ("sync psycopg", "async psycopg", "asyncpg")

_MYSQL = ("sync pymysql", "asyncmy")

# A folder with the programs of a PostgreSQL server: it takes the place of ours.
GIVEN_SERVER = os.environ.get("LANEWAY_POSTGRESQL")
# The fixtures for what is tested on every version.
POSTGRESQL_SERVERS = ("server",) if GIVEN_SERVER else ("server", "server16")

STORES = {
    "PostgreSQL 18": Store("server", _POSTGRESQL),
    # The async clients are tested on 18; `make test-postgresql` has all of them on any server.
    "PostgreSQL 16": Store("server16", ("sync psycopg",)),
    "SQLite": Store("sqlite_files", ("sync sqlite3", "async sqlite3")),
    "SQLite in memory": Store("sqlite_memory", ("sync memory", "async memory")),
    "MariaDB": Store("mariadb", _MYSQL),
}
if GIVEN_SERVER:
    STORES = {"PostgreSQL": Store("server", _POSTGRESQL)}


# What `make test` leaves to `make test-rest`. In the first every engine is tested once, and so are
# the sync and the async client; another version or driver has rarely found anything new.
_REPEATED = {
    "server16": "tested on PostgreSQL 18",
    "PostgreSQL 16": "tested on PostgreSQL 18",
    "asyncpg": "tested with psycopg",
}
_REPEATED_CLIENTS = {
    ("PostgreSQL 18", "async psycopg"): "the driver is tested with sync psycopg",
    ("PostgreSQL 18", "asyncpg"): "the engine is tested with psycopg",
    ("SQLite", "sync sqlite3"): "tested with the async client",
    ("SQLite in memory", "sync memory"): "tested on a file",
    ("SQLite in memory", "async memory"): "tested on a file",
    ("MariaDB", "asyncmy"): "tested with PyMySQL",
}


def repeated_combination(parameters: Mapping[str, object]) -> str | None:
    """Why a test with these parameters only repeats another; None if it does not."""
    case = str(getattr(parameters.get("case"), "name", ""))
    if case.startswith("fairness:") and ("MariaDB", "sync pymysql") in parameters.values():
        return "engines/fairness.py computes them, and is tested on SQLite"
    for value in parameters.values():
        words = value if isinstance(value, tuple) else (value,)
        for name, client in _REPEATED_CLIENTS:
            if words[:2] == (name, client):
                return _REPEATED_CLIENTS[name, client]
        if words and isinstance(words[0], str) and words[0] in _REPEATED:
            return _REPEATED[words[0]]
    return None
