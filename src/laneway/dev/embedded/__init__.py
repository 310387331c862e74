"""Real database servers for development, tests and benchmarks, started and stopped from Python.

``laneway dev postgresql`` and ``laneway dev mariadb`` start one in the foreground.
"""

from .mariadb import EmbeddedMariaDB, find_mariadb, install_mariadb
from .pgbouncer import PgBouncer, pgbouncer_binary
from .postgresql import EmbeddedPostgres
from .server import EmbeddedServer, EmbeddedServerError, Setting, free_port, server_account

__all__ = [
    "EmbeddedMariaDB",
    "EmbeddedPostgres",
    "EmbeddedServer",
    "EmbeddedServerError",
    "PgBouncer",
    "Setting",
    "find_mariadb",
    "free_port",
    "install_mariadb",
    "pgbouncer_binary",
    "server_account",
]
