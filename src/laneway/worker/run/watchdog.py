"""Notices a handler that blocks the event loop: then no timeout is kept, and every other handler
of the worker waits for it."""

import asyncio
import logging
import sys
import threading
import traceback

from laneway.worker.clock import now
from laneway.worker.execute.pool import HandlerPool

_log = logging.getLogger("laneway.worker")

# Seconds: how often it looks, how long a step of waiting is, and what is too long.
_EVERY = 0.5
_STEP = 0.1
_TOO_LONG = 1.0
_FRAMES = 12


class Watchdog:
    """A thread that asks the loop for a sign while handlers run. Made in the loop's thread."""

    def __init__(self, pool: HandlerPool) -> None:
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="laneway-watchdog", daemon=True).start()

    def close(self) -> None:
        self._ended.set()

    def _work(self) -> None:
        while not self._ended.wait(_EVERY):
            if self._pool.running:
                sign = threading.Event()
                try:
                    self._loop.call_soon_threadsafe(sign.set)
                except RuntimeError:  # the loop is closed
                    return
                self._wait_for(sign)

    def _wait_for(self, sign: threading.Event) -> None:
        waited, told = 0.0, False
        while not (self._ended.is_set() or sign.is_set()):
            begun = now()
            sign.wait(_STEP)
            # More than a step: the process was stopped, or the machine is too busy for anybody.
            waited += min(now() - begun, _STEP)
            if waited >= _TOO_LONG and not told and not sign.is_set():
                told = self._tell()

    def _tell(self) -> bool:
        """Whether a task of the loop runs just now."""
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread)
        if task is None or frame is None:
            return False
        job = next((job for job in tuple(self._pool.jobs) if job.task is task), None)
        who = "a task of the worker's event loop"
        if job is not None and job.handler is not None:
            who = f"{job.handler.name} (message {job.id})"
        _log.warning(
            "%s has blocked the event loop for more than %g s: no timeout is kept, and every other "
            "handler waits. Make it an ordinary function, which runs in a thread, or call what "
            "blocks with asyncio.to_thread(). It is at:\n%s",
            who,
            _TOO_LONG,
            "".join(traceback.format_stack(frame)[-_FRAMES:]),
            extra={} if job is None else job.log_fields(),
        )
        return True
