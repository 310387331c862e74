"""Several sessions, one step at a time: who waits is seen in the server, not guessed."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

Connection = psycopg.Connection[Any]
Step = Callable[[Connection], object]

_WAITING = """
select pg_blocking_pids(pid) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'
"""
_PATIENCE = 20  # seconds until a test gives up, never reached when all is well
# What a session may be refused with: it is the same as a rollback.
_REFUSALS = (psycopg.errors.SerializationFailure,)


class Session:
    """One connection and its thread; steps given while one waits run after it."""

    def __init__(self, stepper: "Stepper") -> None:
        self._stepper = stepper
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[Step] = deque()
        self._running: Future[object] | None = None
        self.connection: Connection = psycopg.connect(stepper.url, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self.blocked_by: list[int] = []
        self.killed = False

    def do(self, step: Step) -> None:
        self._waiting.append(step)
        self.go_on()

    def go_on(self) -> None:
        """Run what can run; returns when the session is done with it or waits for another."""
        while True:
            if self._running is None:
                if not self._waiting:
                    return
                self._running = self._thread.submit(self._waiting.popleft(), self.connection)
            if not self._settle():
                return
            self._running = None

    @property
    def is_waiting(self) -> bool:
        return self._running is not None

    @property
    def is_fresh(self) -> bool:
        idle = self.connection.info.transaction_status is TransactionStatus.IDLE
        return not (self.killed or self.is_waiting or self._waiting) and idle

    def _settle(self) -> bool:
        """True when the running step has ended, False when it waits for a lock."""
        assert self._running is not None
        end = time.monotonic() + _PATIENCE
        pause = 0.004
        while time.monotonic() < end:
            try:
                self._running.result(pause)
            except NotYet:
                self.blocked_by = self._stepper.blockers(self.pid)
                if self.blocked_by:
                    return False
                pause = 0.001
            except _REFUSALS:
                self.refuse()
                return True
            except psycopg.OperationalError:
                if not self.killed:
                    raise
                return True
            else:
                self.blocked_by = []
                return True
        raise TimeoutError("a step neither ended nor waited for a lock")

    def refuse(self) -> None:
        self._waiting.clear()
        self._stepper.notes.pop(self.pid, None)
        self._thread.submit(self.connection.rollback).result(_PATIENCE)

    def begin(self, isolation: str = "read committed") -> None:
        self.do(
            lambda connection: connection.execute(b"begin isolation level " + isolation.encode())
        )

    def commit(self) -> None:
        self.do(self._commit)

    def rollback(self) -> None:
        self.do(self._rollback)

    def _commit(self, connection: Connection) -> None:
        connection.execute("commit")
        for note in self._stepper.notes.pop(self.pid, []):
            note()

    def _rollback(self, connection: Connection) -> None:
        connection.execute("rollback")
        self._stepper.notes.pop(self.pid, None)

    def kill(self) -> None:
        """The backend dies, whatever it is doing; its locks are gone when this returns."""
        self.killed = True
        self._waiting.clear()
        self._stepper.notes.pop(self.pid, None)
        self._stepper.terminate(self.pid)
        if self._running is not None:
            with suppress(psycopg.OperationalError):
                self._running.result(_PATIENCE)
            self._running = None

    def close(self) -> None:
        if self._running is not None:
            self.kill()
        self._thread.shutdown()
        self.connection.close()


class Stepper:
    """Opens the sessions and watches them from a connection of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.notes: dict[int, list[Callable[[], object]]] = {}
        self._watch: Connection = psycopg.connect(url, autocommit=True)
        self._spare: list[Session] = []
        self._pids: set[int] = set()

    def session(self) -> Session:
        session = self._spare.pop() if self._spare else Session(self)
        self._pids.add(session.pid)
        return session

    def give_back(self, session: Session) -> None:
        """For the next one, if it is as good as new."""
        if session.is_fresh:
            self._spare.append(session)
        else:
            session.close()

    def blockers(self, pid: int) -> list[int]:
        """Which of our sessions it waits for; autovacuum and the like pass by themselves."""
        row = self._watch.execute(_WAITING, [pid]).fetchone()
        return [blocker for blocker in row[0] if blocker in self._pids] if row else []

    def terminate(self, pid: int) -> None:
        self._watch.execute("select pg_terminate_backend(%s)", [pid])
        end = time.monotonic() + _PATIENCE
        while self._watch.execute(
            "select 1 from pg_stat_activity where pid = %s", [pid]
        ).fetchone():
            assert time.monotonic() < end, "a backend would not die"

    def release(self, sessions: Sequence[Session]) -> None:
        """After a step of one: whoever waited for it goes on, and so on."""
        moved = True
        while moved:
            moved = False
            for session in sessions:
                if session.is_waiting:
                    session.go_on()
                    moved = moved or not session.is_waiting

    def close(self) -> None:
        for session in self._spare:
            session.close()
        self._watch.close()
