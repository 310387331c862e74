"""Processes for functions that are CPU-bound or dangerous: one that dies fails only its message.

Nothing of a message is pickled: it goes as JSON and bytes, its outcome comes back as JSON, and the
function is found by its name.
"""

import asyncio
import base64
import json
import multiprocessing
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from penstock.errors import DecodeError, HandlerDied
from penstock.model import KEEP

from .deciding import UndecodablePayload
from .handlers import Handler
from .job import Job
from .outcomes import Defer, Fail
from .process_child import GROUP_SIGNALS, Answer, main
from .rebuilding import rebuilt
from .threads import Threads

_SPAWN = multiprocessing.get_context(
    "spawn"
)  # a fork would copy the loop, its sockets and its locks
_LOOK_EVERY = 1.0  # seconds
_COLUMNS = 16  # of a row, without state and payload


class Processes:
    """Up to ``most`` children, each with one message at a time; they start when they are needed."""

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)
        self._children: list[Child] = []
        self._threads = Threads()

    @asynccontextmanager
    async def child(self) -> AsyncIterator["Child"]:
        """One for the caller alone."""
        async with self._free:
            child = self._children.pop() if self._children else Child(self._threads)
            try:
                yield child
            finally:
                if child.is_alive:
                    self._children.append(child)

    def close(self) -> None:
        for child in self._children:
            child.kill()
        self._children.clear()
        self._threads.close()


class Child:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._pipe: Connection | None = None
        self._process: BaseProcess | None = None
        self._killed = False

    @property
    def is_alive(self) -> bool:
        # What was killed may seem to live for a moment, if a thread has just heard of its end.
        return not self._killed and self._process is not None and self._process.is_alive()

    async def call(self, job: Job, handler: Handler) -> object:
        """What the handler returned, if it is an outcome; raises what it raised. Interrupted or out
        of time, it kills the child: nobody would wait for what it says."""
        try:
            answer = await self._threads.run(lambda: self._exchange(job, handler))
        except asyncio.CancelledError:
            self.kill()
            raise
        return _read(answer, handler)

    def kill(self) -> None:
        """The pipe closes with the last reference to it. A thread may be about to read from it, and
        would read what another child says, if its number were free to be used again."""
        self._killed = True
        if self._process is not None and self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _exchange(self, job: Job, handler: Handler) -> Answer:
        """No message is to blame for a process that had died before: another takes its place."""
        parts = _parts(job, handler)
        if self.is_alive and self._hands_over(parts):
            return self._answer()
        self._start()
        if self._killed:  # while it was starting
            self.kill()
        if not self._hands_over(parts):
            raise self._death()
        return self._answer()

    def _hands_over(self, parts: list[bytes]) -> bool:
        """Whether the process took the message: its handler began then, and not before."""
        assert self._pipe is not None
        try:
            for part in parts:
                self._pipe.send_bytes(part)
            self._hear()
        except (EOFError, OSError):
            return False
        return True

    def _answer(self) -> Answer:
        try:
            answer: Answer = json.loads(self._hear())
        except (EOFError, OSError):
            raise self._death() from None
        return answer

    def _hear(self) -> bytes:
        """Processes that the handler forked hold the pipe open, and the sentinel too: then only a
        look shows that it has died."""
        assert self._pipe is not None and self._process is not None
        while not self._pipe.poll(_LOOK_EVERY):
            if not self._process.is_alive() and not self._pipe.poll():
                raise EOFError
        return self._pipe.recv_bytes()

    def _death(self) -> HandlerDied:
        assert self._process is not None
        self._process.join()
        return HandlerDied(_obituary(self._process.exitcode))

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=main, args=(theirs,), daemon=True)
        resource_tracker.ensure_running()  # starting it unblocks signals, so not in between
        with _group_signals_blocked():
            self._process.start()
        theirs.close()


@contextmanager
def _group_signals_blocked() -> Iterator[None]:
    """A process that starts in here holds them back until it knows what to do with them: a deploy
    that signals the whole group would kill it before, and the message would be to blame."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _parts(job: Job, handler: Handler) -> list[bytes]:
    head = {
        "module": handler.function.__module__,
        "function": handler.function.__qualname__,
        "row": list(job._row[:_COLUMNS]),
        "times": [job.claimed_at.isoformat(), job.until.isoformat()],
        "state": job.state is not None,
        "spent": job.failures,
    }
    return [json.dumps(head).encode(), bytes(job.state or b""), bytes(job.payload)]


def _read(answer: Answer, handler: Handler) -> object:
    what = answer["what"]
    if what == "returned":
        return None
    if what == "fail":
        return Fail(answer["reason"], error=answer["error"])
    if what == "defer":
        return _deferral(answer)
    if what == "undecodable":
        raise UndecodablePayload(DecodeError(answer["text"]))
    error = rebuilt(answer["module"], answer["type"], answer["text"])
    error.add_note(f"in the process of {handler.name}:\n{answer['trace']}")
    raise error


def _deferral(answer: dict[str, Any]) -> Defer:
    delay, at, state = answer["delay"], answer["at"], answer["state"]
    return Defer(
        None if delay is None else timedelta(seconds=delay),
        at=None if at is None else datetime.fromisoformat(at),
        state=KEEP if state == "keep" else _state(state),
        reason=answer["reason"],
        error=answer["error"],
    )


def _state(state: dict[str, Any]) -> object:
    return base64.b64decode(state["bytes"]) if "bytes" in state else state["value"]


def _obituary(code: int | None) -> str:
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"the process that ran the handler ended {how}"
