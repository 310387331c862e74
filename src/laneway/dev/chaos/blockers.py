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


WAIT = 1.0
"""Seconds that a lock is waited for. Whoever waits here resumes the processes that are stopped, and
one of those may hold it."""


class Blocker:
    """``snapshot``, ``lock`` and ``end_idle`` return the function that releases it."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    def snapshot(self) -> Callable[[], None]:
        return self._hold(SNAPSHOT[self._config.engine], sql(self._config.engine, "effects"))

    def lock(self) -> Callable[[], None]:
        begin = [] if self._config.engine == "sqlite" else ["begin"]
        return self._hold(*begin, sql(self._config.engine, "block_writers"))

    def end_idle(self) -> Callable[[], None]:
        """The server ends connections that idle for a moment, as it does after hours elsewhere."""
        self._set("idle_timeout")
        return lambda: self._set("no_idle_timeout")

    def _set(self, name: str) -> None:
        """Each line by itself. If the server is away, nothing changes."""
        with suppress(Exception):
            app = AppConnection(self._config, WAIT)
            for line in sql(self._config.engine, name).splitlines():
                app.execute(line)
            app.close()

    def reaches_server(self) -> bool:
        try:
            app = AppConnection(self._config, WAIT)
            app.execute(sql(self._config.engine, "effects"))
        except Exception:
            return False
        app.close()
        return True

    def _hold(self, *statements: str) -> Callable[[], None]:
        # Another may hold the lock, or the server may be down: then nothing is blocked.
        app = AppConnection(self._config, WAIT)
        with suppress(Exception):
            for statement in statements:
                app.execute(statement)
        return app.close
