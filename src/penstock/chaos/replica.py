"""A PostgreSQL server and its synchronous replica, which can take over."""

import time
from types import TracebackType
from typing import Self

from penstock.embedded import EmbeddedPostgres, EmbeddedServerError

PATIENCE = 30.0  # seconds until the replica must have caught up


class Replica(EmbeddedPostgres):
    """Begins as a copy of another server, and follows it."""

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
    """A commit is acknowledged when both have it. ``kill`` and ``start`` mean whoever is primary;
    a second promotion has nobody left to promote."""

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
        """Answers the port of whoever is primary then."""
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

        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with psycopg.connect(self._primary.url(), autocommit=True) as connection:
                found = connection.execute(
                    "select from pg_stat_replication where sync_state = 'sync'"
                ).fetchall()
            if found:
                return
            time.sleep(0.1)
        raise EmbeddedServerError("the replica did not become synchronous")
