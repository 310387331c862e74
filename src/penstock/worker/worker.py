"""The worker as its users see it."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from penstock.client.async_queue import AsyncQueue
from penstock.client.sync_queue import Queue
from penstock.errors import InvalidOption, PenstockError
from penstock.retry import Retry

from .handlers import Ack, Function, Handlers, Run, check_payload, make_handler
from .health import Health, scraper
from .hooks import Hook, Hooks
from .kit import Kit
from .options import WorkerOptions, changed_options, checked_options
from .parting import PARTING, part
from .performing import Middleware
from .shift import Shift
from .stopping import CutOff, Stopping, cut_off_by
from .transactions import check_transactions
from .watching import Watcher

F = TypeVar("F", bound=Function)
H = TypeVar("H", bound=Hook)

_log = logging.getLogger("penstock.worker")

GRACE = timedelta(seconds=30)
UNKNOWN_DELAY = timedelta(seconds=30)
UNKNOWN_PATIENCE = timedelta(hours=1)


class Worker:
    """Claims messages and hands each to the handler of its kind.

    ``queue`` says where: a client of either world, whose URL and options the worker's own
    connections take over. ``queues`` is the client's own queue by default, ``lease`` its lease.
    After a stop, running handlers have ``grace`` to end. A message of a kind without a handler is
    given back for ``unknown_delay``, and a dead letter once it has waited ``unknown_patience``.
    ``stop_after`` messages or ``stop_in`` a time the worker stops by itself. ``health_port`` serves
    /livez and /readyz on 127.0.0.1; with a Metrics among the ``watchers`` also /metrics.

    >>> worker = Worker(queue, concurrency=50)
    >>> @worker.handler("send_receipt", retry=Exponential(first=1, most=300, attempts=8))
    ... async def send_receipt(order: Order, message: AsyncMessage) -> None: ...
    >>> worker.run()
    """

    def __init__(
        self,
        queue: Queue | AsyncQueue,
        *,
        concurrency: int = 50,
        queues: Iterable[str] | None = None,
        lease: timedelta | None = None,
        grace: timedelta = GRACE,
        unknown_delay: timedelta = UNKNOWN_DELAY,
        unknown_patience: timedelta = UNKNOWN_PATIENCE,
        processes: int | None = None,
        stop_after: int | None = None,
        stop_in: timedelta | None = None,
        health_port: int | None = None,
        watchers: Iterable[Watcher] = (),
    ) -> None:
        self._queue = queue
        self._health_port = health_port
        self._watchers = tuple(watchers)
        self._hooks = Hooks()
        given = queue._core.options
        self._options = checked_options(
            [given.queue] if queues is None else queues,
            concurrency,
            given.lease if lease is None else lease,
            grace,
            unknown_delay,
            unknown_patience,
            processes,
            stop_after,
            stop_in,
        )
        self._handlers = Handlers()
        self._middleware: list[Middleware] = []
        self._stopping: Stopping | None = None  # while it runs
        self.health: Health | None = None
        """Of the last run; its ``port`` tells where, if any free one (0) was asked for."""

    @property
    def queues(self) -> tuple[str, ...]:
        return self._options.queues

    @property
    def kinds(self) -> list[str]:
        """The kinds that have a handler of their own."""
        return self._handlers.kinds()

    def override(
        self, *, queues: Iterable[str] | None = None, concurrency: int | None = None
    ) -> None:
        """Changes what is given, for those who start a worker that a module defines. What is under
        way stays as it is."""
        self._options = changed_options(self._options, queues, concurrency)

    def handler(
        self,
        kind: str | None = None,
        *,
        retry: Retry | None = None,
        timeout: timedelta | float | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
    ) -> Callable[[F], F]:
        """Registers the function for a kind; without one, for all kinds that have no other.

        The first parameter gets the payload as its annotation says; one annotated as Message or
        AsyncMessage gets the message. Async functions run in the event loop, plain ones in a
        thread, or with ``run="process"`` in a process of their own. ``timeout`` is in seconds or a
        timedelta. ``ack`` says what an error does: "retry" (the default) or "reject" (a dead letter
        at once); "first" completes before the handler runs, so that it runs at most once; with
        "manual" the handler settles the message itself.

        >>> @worker.handler("resize", run="process", timeout=60)
        ... def resize(image: Image) -> None: ...
        """

        def register(function: F) -> F:
            self._handlers.add(kind, make_handler(function, retry, timeout, ack, run))
            return function

        return register

    def middleware(self, function: Middleware) -> Middleware:
        """Wraps every handler, the first one outermost: ``async def around(message, call)``."""
        self._middleware.append(function)
        return function

    def on_start(self, hook: H) -> H:
        """Called before the first claim, plain or async; if it raises, nothing is claimed."""
        self._hooks.add("start", hook)
        return hook

    def on_stop(self, hook: H) -> H:
        """Called after the last write, however the run ended, if all the start hooks were."""
        self._hooks.add("stop", hook)
        return hook

    def on_error(self, hook: H) -> H:
        """Called with the message and the exception of a failed handler, for those who report."""
        self._hooks.add("error", hook)
        return hook

    def run(self, *, until_empty: bool = False) -> None:
        """Works until SIGTERM or SIGINT, or until its own limits; a second signal hurries it.

        With ``until_empty`` until nothing can be claimed and everything is settled.
        """
        asyncio.run(self._run(until_empty))

    async def serve(self, *, until_empty: bool = False) -> None:
        """The same in this event loop, without signals: until :meth:`stop` is called."""
        await self._work(replace(self._options, until_empty=until_empty))

    def stop(self) -> None:
        """Stops in good order: handlers end within the grace, the rest is given back. From another
        thread use ``loop.call_soon_threadsafe(worker.stop)``."""
        if self._stopping is not None:
            self._stopping.stop()

    def check(self) -> list[str]:
        """What would keep the worker from working, as far as it can be known without starting."""
        problems = []
        if not self._handlers.all():
            problems.append("the worker has no handler: register one with @worker.handler")
        for handler in self._handlers.all():
            try:
                check_payload(handler)
            except InvalidOption as error:
                problems.append(str(error))
        try:
            asyncio.run(self._check_database())
        except PenstockError as error:
            problems.append(str(error))
        return problems

    async def _check_database(self) -> None:
        async with self.kit().open_client() as client:
            check_transactions(self._handlers.all(), client._core.engine.lacks)
            await client.schema_version()

    async def _run(self, until_empty: bool) -> None:
        loop = asyncio.get_running_loop()
        in_main = threading.current_thread() is threading.main_thread()
        # Signals come to the main thread; in another one somebody else calls stop().
        numbers = (signal.SIGTERM, signal.SIGINT) if in_main else ()
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await self.serve(until_empty=until_empty)
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stopping is None:
            return
        if self._stopping.wanted.is_set():
            _log.warning("%s again: stopping at once", number.name)
            self._stopping.stop_now()
        else:
            _log.info("%s: stopping", number.name)
            self._stopping.stop()

    async def _work(self, options: WorkerOptions) -> None:
        if self._stopping is not None:
            raise InvalidOption("the worker is running already")
        if not self._handlers.all():
            raise InvalidOption("the worker has no handler: register one with @worker.handler")
        stopping = self._stopping = Stopping()
        try:
            async with cut_off_by(stopping.hurry):
                await self._hooks.call("start")
            try:
                if not stopping.wanted.is_set():
                    await self._serve(self.kit(options), stopping)
            finally:
                await self._hooks.tell("stop")
        except CutOff:
            _log.warning("stopped before its start hooks had ended")
        finally:
            self._stopping = None

    async def _serve(self, kit: Kit, stopping: Stopping) -> None:
        client = kit.open_client()
        shift = Shift(client, kit, self._watchers, stopping)
        self.health = Health(shift.problems, scraper(self._watchers))
        try:
            if self._health_port is not None:
                await self.health.start(self._health_port)
            await shift.work()
        finally:
            await self.health.close()
            await part(client.close(), PARTING)

    def kit(self, options: WorkerOptions | None = None) -> Kit:
        """All but the connections, for those who run the handlers elsewhere."""
        return Kit(
            self._queue._address,
            self._queue._core.options,
            options or self._options,
            self._handlers,
            tuple(self._middleware),
            self._hooks,
        )
