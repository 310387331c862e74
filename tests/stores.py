"""The databases that tests run on: one line each, and a fixture of the same session for all."""

import os
from typing import NamedTuple, Protocol


class Databases(Protocol):
    """What a store's fixture yields."""

    def create_database(self, name: str) -> str:
        """A new empty database, and its URL."""
        ...


class Store(NamedTuple):
    """``fixture`` starts and stops it (tests/conftest.py); ``clients`` are those of
    penstock.conformance.runner.CLIENTS that can reach it."""

    fixture: str
    clients: tuple[str, ...]


_POSTGRESQL = ("sync psycopg", "async psycopg", "asyncpg")

_MYSQL = ("sync pymysql", "asyncmy")

# A folder with the programs of a PostgreSQL server: it takes the place of ours.
GIVEN_SERVER = os.environ.get("PENSTOCK_POSTGRESQL")
# The fixtures for what is tested on every version.
POSTGRESQL_SERVERS = ("server",) if GIVEN_SERVER else ("server", "server16")

STORES = {
    "PostgreSQL 18": Store("server", _POSTGRESQL),
    "PostgreSQL 16": Store("server16", _POSTGRESQL),
    "SQLite": Store("sqlite_files", ("sync sqlite3", "async sqlite3")),
    "SQLite in memory": Store("sqlite_memory", ("sync memory", "async memory")),
    "MariaDB": Store("mariadb", _MYSQL),
}
if GIVEN_SERVER:
    STORES = {"PostgreSQL": Store("server", _POSTGRESQL)}
