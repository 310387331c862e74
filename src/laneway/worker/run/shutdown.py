"""Shutting down: the request, which may come before there is anything to stop, and waiting for
what may never end (a silent database, a handler that ignores its cancellation) only so long."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

_log = logging.getLogger("laneway.worker")

CLOSE_TIMEOUT = 2.0
"""Seconds for what is closed at the end: a database that answers does so much sooner."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """All that ask a process to end. A terminal that closes sends SIGHUP; under nohup it is
    ignored, and stays so."""
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return tuple(numbers)


class Shutdown:
    """Of one run of a worker. After ``requested`` handlers may end; ``immediate`` does not wait for
    them. A part can be stopped by itself; ``whole`` is what it is a part of."""

    def __init__(self, whole: "Shutdown | None" = None) -> None:
        self.requested = asyncio.Event()
        self.immediate = asyncio.Event()
        self.whole = whole or self
        self._parts: list[Shutdown] = []

    def part(self) -> "Shutdown":
        """Stops with all the others."""
        made = Shutdown(self)
        self._parts.append(made)
        if self.immediate.is_set():
            made.stop_now()
        elif self.requested.is_set():
            made.stop()
        return made

    def stop(self) -> None:
        self.requested.set()
        for part in self._parts:
            part.stop()

    def stop_now(self) -> None:
        self.immediate.set()
        self.requested.set()
        for part in self._parts:
            part.stop_now()

    def on_signal(self, number: signal.Signals) -> None:
        """The first one asks, the second one does not wait."""
        if self.requested.is_set():
            _log.warning("%s again: stopping at once", number.name)
            self.stop_now()
        else:
            _log.info("%s: stopping", number.name)
            self.stop()


@contextmanager
def stopping_on_signals(shutdown: Shutdown) -> Iterator[None]:
    """Signals arrive in the main thread only; in another one the caller stops by itself."""
    loop = asyncio.get_running_loop()
    in_main = threading.current_thread() is threading.main_thread()
    numbers = stop_signals() if in_main else ()
    for number in numbers:
        loop.add_signal_handler(number, shutdown.on_signal, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class StoppedEarly(Exception):
    """What ran was cancelled by the event that it had been given."""


@asynccontextmanager
async def cancelled_by(event: asyncio.Event) -> AsyncIterator[None]:
    """Cancels what runs inside when the event is set, and raises StoppedEarly then.

    In the caller's own task, not in another: context variables that are set inside stay set.
    """
    limit = asyncio.timeout(None)
    try:
        async with limit:
            waiting = asyncio.create_task(_expire(limit, event))
            try:
                yield
            finally:
                waiting.cancel()
    except TimeoutError:
        if limit.expired():
            raise StoppedEarly from None
        raise


async def _expire(limit: asyncio.Timeout, event: asyncio.Event) -> None:
    await event.wait()
    limit.reschedule(asyncio.get_running_loop().time())


async def finish_within(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Abandons the work if it has not ended by then."""
    task = asyncio.create_task(work)
    await asyncio.wait([task], timeout=seconds)
    if task.done():
        task.result()
    else:
        abandon(task)


async def cancel_all(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    """Cancels them and waits for their end, whatever it is; abandons those that take longer."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
        task.add_done_callback(_retrieve_exception)
    _, left = await asyncio.wait(tasks, timeout=seconds)
    for task in left:
        abandon(task)


def abandon(task: asyncio.Task[None]) -> None:
    """Cancels the task and waits for it no more, not even when the event loop closes."""
    task.cancel()
    task.add_done_callback(_retrieve_exception)
    asyncio._unregister_task(task)


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Otherwise asyncio would log that nobody did."""
    if not task.cancelled():
        task.exception()
