"""Processes for functions that are CPU-bound or may crash: one that dies fails only its message.

Nothing is pickled: a message is sent as JSON and bytes, its outcome comes back as JSON, and the
function is imported by its name.
"""

import asyncio
import base64
import json
import multiprocessing
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime, timedelta
from functools import reduce
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from laneway.errors import (
    DecodeError,
    HandlerDied,
    HandlerFailed,
    InvalidPayload,
    PayloadTooLarge,
)
from laneway.event import StoredResult
from laneway.model import KEEP
from laneway.plan import ClaimColumn
from laneway.worker.handlers import Handler
from laneway.worker.job import Job, UndecodablePayload, UnstorableResult
from laneway.worker.outcomes import Defer, Fail, Throttled
from laneway.worker.telemetry import process_wide

from .process_child import GROUP_SIGNALS, Reply, main
from .threads import Threads

# A fork would copy the event loop, its sockets and its locks.
_SPAWN = multiprocessing.get_context("spawn")
_CHECK_EVERY = 1.0  # seconds
_COLUMNS = ClaimColumn.STATE  # of a row, without state and payload


class Processes:
    """Each has one message at a time, and is started when it is needed; ``free`` bounds them."""

    def __init__(
        self,
        free: asyncio.Semaphore,
        max_result: int,
        note_progress: Callable[[Job], None],
    ) -> None:
        self._free = free
        self._max_result = max_result
        self._note_progress = note_progress
        self._loop = asyncio.get_running_loop()
        self._children: list[Child] = []
        self._threads = Threads()

    @asynccontextmanager
    async def child(self) -> AsyncIterator["Child"]:
        """One for the caller alone."""
        async with self._free:
            child = self._children.pop() if self._children else self._new_child()
            try:
                yield child
            finally:
                if child.is_alive:
                    self._children.append(child)

    def _note(self, job: Job) -> None:
        """Called by a thread that waits for a process."""
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._loop.call_soon_threadsafe(self._note_progress, job)

    def _new_child(self) -> "Child":
        return Child(self._threads, self._max_result, self._note)

    def close(self) -> None:
        for child in self._children:
            child.kill()
        self._children.clear()
        self._threads.close()


class Child:
    def __init__(self, threads: Threads, max_result: int, note: Callable[[Job], None]) -> None:
        self._threads = threads
        self._max_result = max_result
        self._note = note
        self._pipe: Connection | None = None
        self._process: BaseProcess | None = None
        self._killed = False

    @property
    def is_alive(self) -> bool:
        # A killed process may seem alive for a moment, if a thread has just read its exit code.
        return not self._killed and self._process is not None and self._process.is_alive()

    async def ready(self) -> None:
        """Its start is nobody's run time. A process that does not start fails the call after it."""
        try:
            await self._threads.run(self._start_if_needed)
        except asyncio.CancelledError:
            self.kill()
            raise

    async def call(self, job: Job, handler: Handler) -> object:
        """What the handler returned, if it is an outcome; raises what it raised. Kills the process
        when it is cancelled or times out."""
        try:
            reply = await self._threads.run(lambda: self._exchange(job, handler))
        except asyncio.CancelledError:
            self.kill()
            raise
        return _read(reply, handler)

    def kill(self) -> None:
        """Leaves the pipe to its last reference: a thread may be about to read from it, and would
        read from another process if the descriptor were reused."""
        self._killed = True
        if self._process is not None and self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _exchange(self, job: Job, handler: Handler) -> Reply:
        """A process that died before it took the message is replaced: not the message's fault."""
        parts = _parts(job, handler, self._max_result)
        if self.is_alive and self._send(parts):
            return self._reply(job)
        if not (self._start() and self._send(parts)):
            raise self._death()
        return self._reply(job)

    def _start_if_needed(self) -> None:
        if not self.is_alive:
            self._start()

    def _send(self, parts: list[bytes]) -> bool:
        """Whether the process took the message; its handler does not begin before."""
        assert self._pipe is not None
        try:
            for part in parts:
                self._pipe.send_bytes(part)
            self._receive()
        except (EOFError, OSError):
            return False
        return True

    def _reply(self, job: Job) -> Reply:
        while True:
            try:
                reply: Reply = json.loads(self._receive())
            except (EOFError, OSError):
                raise self._death() from None
            if reply["what"] != "progress":
                return reply
            share, note = reply["said"]
            job.progress_noted = (share, note)
            self._note(job)

    def _receive(self) -> bytes:
        """Polls: processes that the handler forked hold the pipe and the sentinel open, and only a
        check shows that the handler's process died."""
        assert self._pipe is not None and self._process is not None
        while not self._pipe.poll(_CHECK_EVERY):
            if not self._process.is_alive() and not self._pipe.poll():
                raise EOFError
        return self._pipe.recv_bytes()

    def _death(self) -> HandlerDied:
        assert self._process is not None
        self._process.join()
        return HandlerDied(_exit_text(self._process.exitcode))

    def _start(self) -> bool:
        """Whether it is ready for a message."""
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=main, args=(theirs,), daemon=True)
        resource_tracker.ensure_running()  # its start unblocks signals, so not inside of the block
        with _group_signals_blocked():
            self._process.start()
        theirs.close()
        if self._killed:  # while it was starting
            self.kill()
        try:
            self._receive()
        except (EOFError, OSError):
            return False
        return True


@contextmanager
def _group_signals_blocked() -> Iterator[None]:
    """A process that starts in here blocks them until its handlers are set: otherwise a deploy that
    signals the whole group would kill it, and its message would fail."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _parts(job: Job, handler: Handler, max_result: int) -> list[bytes]:
    head = {
        "module": handler.function.__module__,
        "function": handler.function.__qualname__,
        "row": list(job._row[:_COLUMNS]),
        "times": [job.claimed_at.isoformat(), job.until.isoformat()],
        "state": job.state is not None,
        "spent": job.failures,
        "keep": None if job.keep_result is None else max_result,
        "carried": [(one.place, one.write()) for one in process_wide.carried],
    }
    return [json.dumps(head).encode(), bytes(job.state or b""), bytes(job.payload)]


def _read(reply: Reply, handler: Handler) -> object:
    what = reply["what"]
    if what == "returned":
        return _result(reply["result"])
    if what == "fail":
        return Fail(reply["reason"], error=reply["error"])
    if what == "defer":
        return _deferral(reply)
    if what == "throttled":
        return Throttled(reply["retry_after"], limit=reply["limit"])
    if what == "undecodable":
        raise UndecodablePayload(DecodeError(reply["text"]))
    error = _rebuilt(reply["module"], reply["type"], reply["text"])
    error.add_note(f"in the process of {handler.name}:\n{reply['trace']}")
    raise error


def _result(result: dict[str, str] | None) -> StoredResult | None:
    if result is None:
        return None
    if "error" in result:
        large = result["type"] == PayloadTooLarge.__name__
        raise UnstorableResult((PayloadTooLarge if large else InvalidPayload)(result["error"]))
    return StoredResult(result["type"], base64.b64decode(result["bytes"]))


def _deferral(reply: Reply) -> Defer:
    delay, at, state = reply["delay"], reply["at"], reply["state"]
    return Defer(
        None if delay is None else timedelta(seconds=delay),
        at=None if at is None else datetime.fromisoformat(at),
        state=KEEP if state == "keep" else _state(state),
        reason=reply["reason"],
        error=reply["error"],
    )


def _state(state: dict[str, Any]) -> object:
    return base64.b64decode(state["bytes"]) if "bytes" in state else state["value"]


def _exit_text(code: int | None) -> str:
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"the process that ran the handler ended {how}"


def _rebuilt(module: str, name: str, text: str) -> Exception:
    """An exception from another process, for retry strategies, which look at its type: of the same
    type if it is known here, without running its ``__init__``, else HandlerFailed."""
    try:
        kind = reduce(getattr, name.split("."), sys.modules[module])
        if isinstance(kind, type) and issubclass(kind, Exception):
            error: Exception = kind.__new__(kind)
            error.args = (text,)
            return error
    except (KeyError, AttributeError, TypeError):
        pass
    return HandlerFailed(f"{module}.{name}: {text}")
