"""Executing a handler: in the event loop, a thread or a process, with its timeout, middleware and
transaction."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

from laneway.client.aio.database import AsyncDatabase
from laneway.client.shared.error_text import LOG_CHARACTERS, said, shortened
from laneway.client.shared.settle_items import held, limit_notes
from laneway.client.sync.database import Database
from laneway.durations import to_seconds
from laneway.errors import DecodeError, LanewayError, LeaseLost
from laneway.limits import AttemptEnd
from laneway.model import Settled
from laneway.plan import Plan
from laneway.worker.clock import now
from laneway.worker.connection_pools import is_exhausted
from laneway.worker.definition import Hooks, Middleware, Next
from laneway.worker.handlers import Handler, check_result, timing_out
from laneway.worker.job import Job, UndecodablePayload, after_error, after_return, rule_of
from laneway.worker.outcomes import (
    CANCEL,
    GIVE_BACK,
    LEAVE,
    Defer,
    Fail,
    GiveBack,
    Outcome,
    Throttled,
    TracebackRule,
)
from laneway.worker.settle import entry_for, settle_in_transaction
from laneway.worker.telemetry.logs import handling

from .batches import Batches
from .handler_message import (
    HandlerMessage,
    HandlerSettling,
    LeaseCheck,
    ThreadHandlerMessage,
    ThreadHandlerSettling,
    TooLate,
)
from .processes import Processes
from .threads import Threads
from .transactions import HandlerTransactions, NoTransaction

# The log line of a failed handler: which message, which attempt, and what happens next.

_log = logging.getLogger("laneway.worker")


def log_failure(job: Job, handler: Handler, error: BaseException, outcome: Outcome) -> None:
    """One line, and the traceback from the handler on."""
    level, consequence = _consequence(job, handler, error, outcome)
    _log.log(
        level,
        "message %d (%s, %s) failed at attempt %d%s, %s: %s: %s",
        job.id,
        job.channel,
        handler.name,
        job.attempt,
        _of_how_many(job, handler),
        consequence,
        type(error).__name__,
        said(error, LOG_CHARACTERS),
        exc_info=(type(error), error, _from_handler(error, handler)),
        extra=job.log_fields(),
    )


def _of_how_many(job: Job, handler: Handler) -> str:
    """The lower one of the strategy's and the message's own; both count from the last progress, and
    attempts count on."""
    if job.attempt != job.failures + 1:
        return ""
    of_handler = getattr(handler.retry, "attempts", None) or job.max_attempts
    return f" of {min(of_handler, job.max_attempts)}"


def _consequence(
    job: Job, handler: Handler, error: BaseException, outcome: Outcome
) -> tuple[int, str]:
    if isinstance(outcome, Defer) and job.failures + 1 < job.max_attempts:
        return logging.WARNING, f"retrying in {to_seconds(outcome.delay or 0):.3g} s"
    if isinstance(outcome, Defer):
        return logging.ERROR, f"now a dead letter (max_attempts={job.max_attempts} of the message)"
    if isinstance(outcome, Fail):
        rule = rule_of(handler.retry, job, error) if outcome.reason == "gave_up" else None
        return logging.ERROR, f"now a dead letter ({rule})" if rule else "now a dead letter"
    if isinstance(outcome, GiveBack) and is_exhausted(error):
        seconds = to_seconds(outcome.delay or 0)
        return logging.WARNING, (
            f"put back for {seconds:g} s without counting the attempt: the handler's pool had no "
            "free connection, so it is too small for the worker's concurrency, or not given back to"
        )
    done = "acknowledged" if job.own_result is None else job.own_result.status.replace("_", " ")
    return logging.ERROR, f"after it was {done}"


def _from_handler(error: BaseException, handler: Handler) -> TracebackType | None:
    """Without the frames of the worker; whole if the handler is not in it."""
    code = getattr(inspect.unwrap(handler.function), "__code__", None)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace or error.__traceback__


# Until a message is retried whose handler could not get its transaction.
_NO_TRANSACTION_DELAY = timedelta(seconds=5)

Call = Callable[[Job, Handler], Awaitable[object]]


class HandlerExecutor:
    """Calls handlers, and turns what they return or raise into an outcome."""

    def __init__(
        self,
        database: AsyncDatabase,
        settling: HandlerSettling,
        lease_check: LeaseCheck,
        threads: Threads,
        processes: Processes,
        transactions: HandlerTransactions,
        middleware: Sequence[Middleware],
        hooks: Hooks,
        tracebacks: TracebackRule,
        concurrency: int,
    ) -> None:
        self._hooks = hooks
        self._reports: set[asyncio.Task[None]] = set()
        self._tracebacks = tracebacks
        self._settling = settling
        self._lease_check = lease_check
        self._processes = processes
        self._transactions = transactions
        self._database = database
        # For verbs on the handler's own connection only: it never opens one.
        self._thread_database = Database(
            database.engine,
            None,  # type: ignore[arg-type]
            database.options,
        )
        loop = asyncio.get_running_loop()
        self._thread_settling = ThreadHandlerSettling(self._thread_database, settling, loop)
        self._threads = threads
        self._middleware = tuple(middleware)
        self._batches = Batches(
            concurrency,
            threads,
            lease_check,
            lambda job: HandlerMessage(job, self._settling),
            lambda job: ThreadHandlerMessage(job, self._thread_settling),
        )

    async def execute(self, job: Job, handler: Handler) -> Outcome:
        """Never raises what the handler raised; only the worker itself cancels this."""
        handling(job)
        outcome = await self._outcome(job, handler)
        return await self._throttle(job, outcome) if isinstance(outcome, Throttled) else outcome

    def _chosen(self, job: Job, handler: Handler, outcome: Outcome) -> Outcome:
        """What the handler itself decided; a message that it gave up is worth a line."""
        if isinstance(outcome, Fail):
            reason = shortened(outcome.reason)
            _log.warning("%s gave up: %s", handler.name, reason, extra=job.log_fields())
        return outcome

    async def _outcome(self, job: Job, handler: Handler) -> Outcome:
        try:
            if handler.ack == "first":
                await self._acknowledge(job)
            result = await self._run(job, handler)
            check_result(handler.name, result)
        except asyncio.CancelledError as error:
            if job.interruption is not None:
                _uncancel()
            return after_error(job, handler, error)
        except (Defer, Fail, Throttled) as outcome:
            return self._chosen(job, handler, after_error(job, handler, outcome))
        except TooLate:
            return LEAVE
        except NoTransaction as error:
            _log.warning(
                "no transaction for %s, giving its message back: %s",
                handler.name,
                error,
                extra=job.log_fields(),
            )
            return LEAVE if job.lost else GiveBack(_NO_TRANSACTION_DELAY)
        except BaseException as error:  # sys.exit() too: it ends the handler, not the worker
            return await self._failed(job, handler, error)
        return self._chosen(job, handler, after_return(job, handler, result))

    async def _throttle(self, job: Job, throttled: Throttled) -> Outcome:
        """Pauses the channel, or the shared limit, first: the message that is put back would start
        again at once."""
        _log.info("throttled: %s", throttled, extra=job.log_fields())
        try:
            engine, length = self._database.engine, throttled.retry_after
            if throttled.limit is not None:
                notes = limit_notes(engine, [job], AttemptEnd.THROTTLED)
                if mine := [note for note in notes if note.name == throttled.limit]:
                    await self._database.run(engine.limits.note_limits(mine))
                await self._database.run(engine.limits.rest_shared_limit(throttled.limit, length))
                return _rested(job, throttled)
            await self._database.run(engine.channels.throttle(job.queue, job.channel, length))
        except LanewayError as error:
            _log.warning(
                "channel %r is not paused, only the message waits: %s",
                job.channel,
                error,
                extra=job.log_fields(),
            )
            return throttled
        return GIVE_BACK

    async def _acknowledge(self, job: Job) -> None:
        message = HandlerMessage(job, self._settling)
        await message.complete()

    async def _failed(self, job: Job, handler: Handler, error: BaseException) -> Outcome:
        outcome = after_error(job, handler, error)
        if isinstance(error, LeaseLost) and error.message_id == job.id and job.own_result is None:
            job.lost = True  # the completion in its transaction was refused
        if outcome is CANCEL:
            return outcome
        if job.settled and handler.ack != "first":
            log_failure(job, handler, error, outcome)
        elif job.in_transaction and outcome is not LEAVE:
            job.failure = error, outcome
        elif outcome is not LEAVE or handler.ack == "first":
            await self._report(job, handler, error, outcome)
        return outcome

    async def _report(
        self, job: Job, handler: Handler, error: BaseException, outcome: Outcome
    ) -> None:
        log_failure(job, handler, error, outcome)
        await self._hooks.call_safely("error", job, error)

    def report_later(self, job: Job, result: Settled | None) -> None:
        """Of a handler that settled its message in its own transaction: the answer to our own
        outcome says whether that had committed."""
        handler = job.handler
        if handler is None or job.failure is None:
            return
        error, outcome = job.failure
        if result is None or result.lost:
            log_failure(job, handler, error, LEAVE)
        else:
            task = asyncio.create_task(self._report(job, handler, error, outcome))
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    async def close(self) -> None:
        """Waits for the hooks that were called late."""
        await asyncio.gather(*self._reports)

    async def _run(self, job: Job, handler: Handler) -> object:
        if handler.batch is not None:
            return await self._through_middleware(job, handler, self._batches.join)
        if handler.run == "process":
            async with self._processes.child() as child:
                await child.ready()
                return await self._run_after_a_wait(job, handler, child.call)
        call = self._call_async if handler.run == "async" else self._call_thread
        if handler.binding.transaction is None:
            return await self._with_timeout(job, handler, call)
        async with self._transactions.slots:
            return await self._run_after_a_wait(job, handler, call)

    async def _run_after_a_wait(self, job: Job, handler: Handler, call: Call) -> object:
        if job.deadline <= now() and not await self._lease_check.regain(job):
            raise TooLate
        job.started = now()
        return await self._with_timeout(job, handler, call)

    async def _with_timeout(self, job: Job, handler: Handler, call: Call) -> object:
        if handler.timeout is None:
            return await self._through_middleware(job, handler, call)
        self._lease_check.limit(job, handler.timeout)
        async with timing_out(handler):
            return await self._through_middleware(job, handler, call)

    async def _through_middleware(self, job: Job, handler: Handler, call: Call) -> object:
        if not self._middleware:
            return await call(job, handler)

        async def innermost() -> object:
            return await call(job, handler)

        step: Next = innermost
        for middleware in reversed(self._middleware):
            step = _around(middleware, job, step)
        return await step()

    async def _call_async(self, job: Job, handler: Handler) -> object:
        binding = handler.binding
        message = HandlerMessage(job, self._settling) if binding.message else None
        if binding.transaction is not None:
            return await self._call_in_transaction(job, handler, message)
        placed, named = _arguments(job, handler, message, None)
        return await handler.function(*placed, **named)

    async def _call_in_transaction(
        self, job: Job, handler: Handler, message: HandlerMessage | None
    ) -> object:
        wanted = handler.binding.transaction_type
        async with self._transactions.begin_async(wanted) as connection:
            placed, named = _arguments(job, handler, message, connection)
            result = _finished(handler, await handler.function(*placed, **named))
            if plan := self._settle_plan(job, after_return(job, handler, result)):
                job.maybe_locked = True
                job.own_result = held(await self._database.run(plan, connection))
                job.in_transaction = True
        job.settled = True
        return result

    async def _call_thread(self, job: Job, handler: Handler) -> object:
        message = (
            ThreadHandlerMessage(job, self._thread_settling) if handler.binding.message else None
        )

        def call() -> Any:
            if handler.binding.transaction is not None:
                return self._call_thread_in_transaction(job, handler, message)
            placed, named = _arguments(job, handler, message, None)
            return handler.function(*placed, **named)

        return await self._threads.run(call)

    def _call_thread_in_transaction(
        self, job: Job, handler: Handler, message: ThreadHandlerMessage | None
    ) -> object:
        with self._transactions.begin(handler.binding.transaction_type) as connection:
            placed, named = _arguments(job, handler, message, connection)
            result = _finished(handler, handler.function(*placed, **named))
            if plan := self._settle_plan(job, after_return(job, handler, result)):
                job.maybe_locked = True
                job.own_result = held(self._thread_database.run(plan, connection))
                job.in_transaction = True
        job.settled = True
        return result

    def _settle_plan(self, job: Job, outcome: Outcome) -> Plan[list[Settled]] | None:
        entry = entry_for(job, outcome, self._database.options.max_payload, self._tracebacks)
        return None if entry is None else settle_in_transaction(self._database.engine, entry)


def _rested(job: Job, throttled: Throttled) -> Outcome:
    """A message that does not name the limit is not held back by it: it waits for itself."""
    behind = throttled.limit in job.limits
    return GIVE_BACK if behind else GiveBack(throttled.retry_after)


def _finished(handler: Handler, result: object) -> object:
    """If the work was not done, its transaction rolls back."""
    check_result(handler.name, result)
    if isinstance(result, Throttled):
        raise result
    return result


def _arguments(
    job: Job, handler: Handler, message: object, transaction: object
) -> tuple[list[object], dict[str, object]]:
    try:
        return handler.binding.arguments(job, message, transaction)
    except DecodeError as error:
        raise UndecodablePayload(error) from error


def _around(middleware: Middleware, job: Job, step: Next) -> Next:
    async def run() -> object:
        return await middleware(job, step)

    return run


def _uncancel() -> None:
    """The cancellation was for the handler; the worker still writes the outcome."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
