"""Connections that block others: an old snapshot, and locks that all writers wait for."""

from collections.abc import Callable
from contextlib import suppress

from .app_connection import AppConnection
from .config import RunConfig, sql

SNAPSHOT = {
    "postgresql": "begin isolation level repeatable read",
    "mariadb": "start transaction with consistent snapshot",
    "sqlite": "begin",
}


class Blocker:
    """``snapshot`` and ``lock`` return the function that releases it."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    def snapshot(self) -> Callable[[], None]:
        return self._hold(SNAPSHOT[self._config.engine], sql(self._config.engine, "effects"))

    def lock(self) -> Callable[[], None]:
        begin = [] if self._config.engine == "sqlite" else ["begin"]
        return self._hold(*begin, sql(self._config.engine, "block_writers"))

    def reaches_server(self) -> bool:
        try:
            app = AppConnection(self._config)
            app.execute(sql(self._config.engine, "effects"))
        except Exception:
            return False
        app.close()
        return True

    def _hold(self, *statements: str) -> Callable[[], None]:
        app = AppConnection(self._config)
        # Another may hold the lock, or the server may be down: then nothing is blocked.
        with suppress(Exception):
            for statement in statements:
                app.execute(statement)
        return app.close
