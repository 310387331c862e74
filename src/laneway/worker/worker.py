"""The worker's public class."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar, overload

from laneway.client.shards import Shards
from laneway.durations import Duration
from laneway.errors import InvalidCall, InvalidOption, LanewayError, shown
from laneway.names import check_kind, check_name
from laneway.retry import Retry
from laneway.spelling import explains_call, explains_mistakes

from .definition import (
    Client,
    Hook,
    Hooks,
    Middleware,
    ServedDatabase,
    When,
    WorkerDefinition,
    WorkerOptions,
    changed_options,
    checked_databases,
    checked_options,
    limited_options,
)
from .execute.transactions import check_transactions
from .handlers import (
    Ack,
    Function,
    Handlers,
    Run,
    check_payload,
    checked_function,
    kind_of,
    make_handler,
)
from .outcomes import TracebackRule
from .run.fleet import Fleet
from .run.loop import serve_one
from .run.shutdown import Shutdown, StoppedEarly, cancelled_by, stopping_on_signals
from .tasks.collection import TaskDecorators, Tasks
from .telemetry import process_wide
from .telemetry.health import LOOPBACK, Health, health_address, scraper
from .telemetry.observer import Observer, checked_observers

F = TypeVar("F", bound=Function)
H = TypeVar("H", bound=Hook)
M = TypeVar("M", bound=Middleware)

_log = logging.getLogger("laneway.worker")

# Below the 15 connections of SQLAlchemy's pool: a handler that takes one of its application's
# waits for none.
CONCURRENCY = 10
GRACE = timedelta(seconds=30)
UNHANDLED_DELAY = timedelta(seconds=30)
UNHANDLED_TIMEOUT = timedelta(hours=1)


def _refuse_in_a_loop(verb: str, instead: str) -> None:
    if asyncio._get_running_loop() is not None:
        raise InvalidCall(f"worker.{verb}() cannot run inside an event loop: write {instead}")


_NO_HANDLER = "the worker has no handler: register one with @worker.task or @worker.handler"


@explains_mistakes
class Worker(TaskDecorators):
    """Claims messages and runs the handler of each message's kind.

    ``queue`` is a Queue or an AsyncQueue: the worker opens connections of its own with its URL and
    options. With several, in a list or by name, it serves all of these databases; they share its
    concurrency by their ``weights``. ``queues`` defaults to those of its tasks, and the client's
    for all that name none; ``lease`` to the client's lease.
    After a stop, running handlers have ``grace`` to end. Messages of a kind that has no handler are
    put back for ``unhandled_delay`` and dead-lettered after ``unhandled_timeout``. The worker stops
    by itself after ``max_messages`` messages or after ``max_runtime``. ``health_port`` serves
    /livez and /readyz, and /metrics if one of the ``observers`` is a Metrics, on the loopback or
    on the address ``health_host``.
    ``traceback`` says what a dead letter keeps of it: "keep", "none", or a function that returns
    the text without what is secret.

    >>> worker = Worker(queue, concurrency=20)
    >>> @worker.task(retry=Exponential(initial=1, max_delay=300, attempts=8))
    ... async def send_receipt(order: Order) -> None: ...
    >>> worker.run()
    """

    @explains_call
    def __init__(
        self,
        queue: Client | Iterable[Client] | Mapping[str, Client],
        *,
        weights: Iterable[int] | Mapping[str, int] | None = None,
        concurrency: int = CONCURRENCY,
        queues: Iterable[str] | None = None,
        lease: Duration | None = None,
        grace: Duration = GRACE,
        unhandled_delay: Duration = UNHANDLED_DELAY,
        unhandled_timeout: Duration = UNHANDLED_TIMEOUT,
        processes: int | None = None,
        max_messages: int | None = None,
        max_runtime: Duration | None = None,
        health_port: int | None = None,
        health_host: str = LOOPBACK,
        observers: Iterable[Observer] = (),
        traceback: TracebackRule = "keep",
    ) -> None:
        super().__init__({})
        self._databases = checked_databases(queue, weights)
        self._queue = self._databases[0].queue
        if len(self._databases) == 1 or isinstance(queue, Shards):
            self._clients.bind(queue if isinstance(queue, Shards) else self._queue)
        self._included: list[TaskDecorators] = []
        self._names_queues = queues is not None
        self._health = health_address(health_host, health_port)
        self._observers = checked_observers(observers)
        self._hooks = Hooks()
        given = self._queue.database.options
        self._own_lease = lease is None
        self._options = checked_options(
            [given.queue] if queues is None else queues,
            concurrency,
            given.lease if lease is None else lease,
            grace,
            unhandled_delay,
            unhandled_timeout,
            processes,
            max_messages,
            max_runtime,
            traceback,
        )
        self._name: str | None = None
        self._middleware: list[Middleware] = []
        self._shutdown: Shutdown | None = None  # while it runs
        self.health: Health | None = None
        """Of the last run; its ``port`` is the one in use if ``health_port=0`` asked for any."""

    @property
    def queues(self) -> tuple[str, ...]:
        """What it claims from."""
        found = [name for database in self._databases for name in self._queues_of(database)]
        return tuple(dict.fromkeys(found))

    def _queues_of(self, database: ServedDatabase) -> tuple[str, ...]:
        if self._names_queues:
            return self._options.queues
        return self._queues_of_tasks(database)

    def _queues_of_tasks(self, database: ServedDatabase) -> tuple[str, ...]:
        mine = [one.queue.name for one in self._databases if database.serves(one.queue)]
        included = [name for other in self._included for name in other._served(database)]
        found = self._queues_of_handlers(mine) + included
        return tuple(dict.fromkeys(found)) or (database.queue.name,)

    def _served(self, database: ServedDatabase) -> list[str]:
        """Its own name for the queue counts, also if another worker includes it."""
        return list(self._queues_of(database))

    @property
    def name(self) -> str:
        """Who holds the leases: the client's ``worker``, unless :meth:`override` gave another."""
        return self._name or self._queue.worker

    @property
    def kinds(self) -> list[str]:
        """The kinds that have a handler of their own."""
        return self._all_handlers().kinds()

    def include(self, *others: "Tasks | Worker") -> None:
        """Runs their tasks and handlers too. Tasks without a client publish through this worker's;
        of a worker its hooks and middleware are added.

        >>> worker.include(shop.mail.tasks, shop.jobs.tasks)
        """
        for other in others:
            if not isinstance(other, TaskDecorators):
                raise InvalidOption(
                    f"include() takes Tasks or a Worker, not {shown(other)}: import the module and "
                    "pass its tasks, as in worker.include(shop.mail.tasks)"
                )
        new = [one for one in dict.fromkeys(others) if one not in self._included]
        self._handlers.include(one._all_handlers() for one in (*self._included, *new))
        for other in new:
            if isinstance(other, Worker):
                self._check_same_database(other)
                self._hooks.include(other._hooks)
                self._middleware.extend(other._middleware)
            else:
                other._clients.lend(self._clients.any)
            self._included.append(other)

    def _check_same_database(self, other: "Worker") -> None:
        mine, theirs = (
            {one.queue._address.database for one in w._databases} for w in (self, other)
        )
        if mine != theirs:
            raise InvalidOption(
                "the workers are for different databases or schemas: run each in a process of its "
                "own"
            )

    def _check_bound(self, tasks: TaskDecorators) -> None:
        """Nobody would take what is published elsewhere."""
        for client in tasks._clients.queues():
            if not any(one.serves(client) for one in self._databases):
                kinds = ", ".join(tasks._handlers.kinds())
                raise InvalidOption(
                    f"the tasks {kinds} are published to {client._address.shown}, which this "
                    "worker does not serve: bind them to its client, or run a worker for that "
                    "database"
                )

    def _all_handlers(self) -> Handlers:
        return self._handlers.include(other._all_handlers() for other in self._included)

    def override(
        self,
        *,
        queues: Iterable[str] | None = None,
        concurrency: int | None = None,
        health_port: int | None = None,
        health_host: str | None = None,
        name: str | None = None,
    ) -> None:
        """Changes the given options, e.g. for a command that starts a worker defined in a module.
        Does not affect a run under way."""
        self._options = changed_options(self._options, queues, concurrency)
        self._names_queues = self._names_queues or queues is not None
        if name is not None:
            self._name = check_name("worker", name)
        if health_port is not None or health_host is not None:
            host, port = self._health or (LOOPBACK, None)
            self._health = health_address(
                health_host or host, port if health_port is None else health_port
            )

    @overload
    def handler(self, kind: F, /) -> F: ...

    @overload
    def handler(
        self,
        kind: str | None = None,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        keep_result: Duration | None = None,
    ) -> Callable[[F], F]: ...

    def handler(
        self,
        kind: str | Function | None = None,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        keep_result: Duration | None = None,
    ) -> Function:
        """Registers a function for messages of one kind; without a kind, the function's name is it.

        The first parameter gets the payload as its annotation says; one annotated as Message or
        AsyncMessage gets the message. Async functions run in the event loop, plain ones in a
        thread, or with ``run="process"`` in a process of their own. ``timeout`` is in seconds or a
        timedelta. ``ack`` says what an error does: "retry" (the default) or "reject" (a dead letter
        at once); "first" completes before the handler runs, so that it runs at most once; with
        "manual" the handler settles the message itself. What it returns is kept for
        ``keep_result``, unless the message itself says for how long.

        >>> @worker.handler
        ... async def send_receipt(order: Order) -> None: ...
        >>> @worker.handler("resize", run="process", timeout=60)
        ... def resize(image: Image) -> None: ...
        """
        named = None if kind is None or callable(kind) else check_kind(kind)

        def register(function: F) -> F:
            handler = make_handler(function, retry, timeout, ack, run, None, keep_result)
            self._handlers.add(kind_of(handler) if named is None else named, handler)
            return function

        return register(kind) if callable(kind) else register

    @overload
    def default_handler(self, function: F, /) -> F: ...

    @overload
    def default_handler(
        self,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        keep_result: Duration | None = None,
    ) -> Callable[[F], F]: ...

    def default_handler(
        self,
        function: Function | None = None,
        *,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ack: Ack = "retry",
        run: Run | None = None,
        keep_result: Duration | None = None,
    ) -> Function:
        """Registers a function for all messages whose kind has no handler of its own, also for
        those published without a kind. The options are those of :meth:`handler`."""

        def register(function: F) -> F:
            handler = make_handler(function, retry, timeout, ack, run, None, keep_result)
            self._handlers.add(None, handler)
            return function

        return register if function is None else register(function)

    @overload
    def middleware(self, function: M, /) -> M: ...

    @overload
    def middleware(self) -> Callable[[M], M]: ...

    def middleware(self, function: M | None = None) -> M | Callable[[M], M]:
        """Wraps every handler, the first one outermost: ``async def around(message, call)``."""

        def register(function: M) -> M:
            self._middleware.append(checked_function("middleware", function))
            return function

        return register if function is None else register(function)

    @overload
    def on_start(self, hook: H, /) -> H: ...

    @overload
    def on_start(self) -> Callable[[H], H]: ...

    def on_start(self, hook: H | None = None) -> H | Callable[[H], H]:
        """Called before the first claim, plain or async; if it raises, nothing is claimed."""
        return self._hook("start", hook)

    @overload
    def on_stop(self, hook: H, /) -> H: ...

    @overload
    def on_stop(self) -> Callable[[H], H]: ...

    def on_stop(self, hook: H | None = None) -> H | Callable[[H], H]:
        """Called after the last write, however the run ended, if all start hooks succeeded."""
        return self._hook("stop", hook)

    @overload
    def on_error(self, hook: H, /) -> H: ...

    @overload
    def on_error(self) -> Callable[[H], H]: ...

    def on_error(self, hook: H | None = None) -> H | Callable[[H], H]:
        """Called with the message and the exception of a failed handler, e.g. to report it."""
        return self._hook("error", hook)

    @overload
    def on_dead(self, hook: H, /) -> H: ...

    @overload
    def on_dead(self) -> Callable[[H], H]: ...

    def on_dead(self, hook: H | None = None) -> H | Callable[[H], H]:
        """Called with each DeadLetter of the worker's queues, whoever made it one: a handler here
        or elsewhere, or a lease that ran out when a worker was killed.

        One worker of all that have such a hook calls it, at least once for each letter: again if
        the hook raises, takes longer than a minute, or its worker dies meanwhile. Letters that died
        while no worker ran are told of for a day.

        >>> @worker.on_dead
        ... async def report(letter: DeadLetter) -> None:
        ...     await alert(letter.kind, letter.id, letter.reason, letter.attempt, letter.error)
        """
        return self._hook("dead", hook)

    def _hook(self, when: When, hook: H | None) -> H | Callable[[H], H]:
        def register(hook: H) -> H:
            self._hooks.add(when, checked_function(f"on_{when}", hook))
            return hook

        return register if hook is None else register(hook)

    def run(
        self,
        *,
        until_empty: bool = False,
        max_messages: int | None = None,
        max_runtime: Duration | None = None,
    ) -> None:
        """Works until SIGTERM, SIGINT, SIGQUIT or SIGHUP; a second signal stops it at once.

        With ``until_empty`` it stops when nothing can be claimed and everything is settled.
        ``max_messages`` and ``max_runtime`` replace the worker's own limits for this run.
        """
        options = limited_options(self._options, until_empty, max_messages, max_runtime)
        _refuse_in_a_loop("run", "await worker.serve()")
        asyncio.run(self._work(options, signals=True))

    async def serve(
        self,
        *,
        until_empty: bool = False,
        max_messages: int | None = None,
        max_runtime: Duration | None = None,
    ) -> None:
        """Like :meth:`run`, in this event loop, without signals: until :meth:`stop` is called."""
        await self._work(limited_options(self._options, until_empty, max_messages, max_runtime))

    def stop(self) -> None:
        """Stops gracefully: handlers have the grace to end, the rest is given back. From another
        thread use ``loop.call_soon_threadsafe(worker.stop)``."""
        if self._shutdown is not None:
            self._shutdown.stop()

    def check(self) -> list[str]:
        """Problems that would keep the worker from working, as far as known without starting it."""
        _refuse_in_a_loop("check", "await asyncio.to_thread(worker.check)")
        problems = []
        handlers = self._all_handlers().all()
        if not handlers:
            problems.append(_NO_HANDLER)
        checks = [partial(check_payload, one) for one in handlers]
        for check in [*checks, *(partial(self._check_bound, one) for one in self._included)]:
            try:
                check()
            except InvalidOption as error:
                problems.append(str(error))
        for database in self._databases:
            which = f"{database.name}: " if len(self._databases) > 1 else ""
            try:
                asyncio.run(self._check_database(self._defined(database, self._options)))
            except LanewayError as error:
                problems.append(f"{which}{error}")
        return problems

    async def _check_database(self, definition: WorkerDefinition) -> None:
        async with definition.open_client() as client:
            check_transactions(
                definition.handlers.all(), client.database.engine.lacks, definition.address.url
            )
            await client.schema_version()

    async def _work(self, options: WorkerOptions, signals: bool = False) -> None:
        if self._shutdown is not None:
            raise InvalidOption("the worker is running already")
        if not self._all_handlers().all():
            raise InvalidOption(_NO_HANDLER)
        for tasks in self._included:
            self._check_bound(tasks)
        shutdown = self._shutdown = Shutdown()
        try:
            with stopping_on_signals(shutdown) if signals else nullcontext():
                await self._work_until(shutdown, options)
        except StoppedEarly:
            _log.warning("stopped before the start hooks ended")
        finally:
            self._shutdown = None

    async def _work_until(self, shutdown: Shutdown, options: WorkerOptions) -> None:
        async with cancelled_by(shutdown.immediate):
            await self._hooks.call("start")
        try:
            if not shutdown.requested.is_set():
                await self._serve(options, shutdown)
        finally:
            await self._hooks.call_safely("stop")

    async def _serve(self, options: WorkerOptions, shutdown: Shutdown) -> None:
        health = self.health = Health(scraper(self._observers))
        if self._health is not None:
            await health.start(*self._health)
        served = [(one, self._defined(one, options)) for one in self._databases]
        observers = (*process_wide.observers, *self._observers)
        try:
            if len(served) > 1:
                await Fleet(served, options, observers, shutdown, health).work()
            else:
                await serve_one(served[0][1], observers, shutdown, health)
        finally:
            await health.close()

    def definition(self) -> WorkerDefinition:
        """Everything but the connections, for running the handlers elsewhere."""
        if len(self._databases) > 1:
            raise InvalidOption(
                "the worker serves several databases: for Spark make one for each database"
            )
        return self._defined(self._databases[0], self._options)

    def _defined(self, database: ServedDatabase, options: WorkerOptions) -> WorkerDefinition:
        given = database.queue.database.options
        lease = given.lease if self._own_lease else options.lease
        return WorkerDefinition(
            database.queue._address,
            replace(given, worker=self._name or database.queue.worker),
            replace(options, queues=self._queues_of(database), lease=lease),
            self._all_handlers(),
            (*process_wide.middleware, *self._middleware),
            self._hooks,
            self._queues_of_tasks(database),
        )
