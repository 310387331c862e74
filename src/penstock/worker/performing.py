"""Running a handler: in the loop, in a thread, in a process; in a transaction or not; in time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from penstock.client.async_core import AsyncCore
from penstock.client.fields import MessageFields
from penstock.client.settlement import held
from penstock.client.sync_core import Core
from penstock.errors import DecodeError
from penstock.model import Settled
from penstock.plan import Plan

from .deciding import UndecodablePayload, after_error, after_return
from .entries import entry_for, settling_plan
from .failing import tell_failure
from .hand import Hand, HeldMessage, HeldThreadMessage, ThreadHand
from .handlers import Handler
from .hooks import Hooks
from .job import Job
from .outcomes import LEAVE, Defer, Fail, GiveBack, Outcome
from .processes import Processes
from .tenure import Tenure
from .threads import Threads
from .transactions import NoTransaction, Transactions

_log = logging.getLogger("penstock.worker")

# Until a message is tried again whose handler could not have its transaction.
_WITHOUT_TRANSACTION = timedelta(seconds=5)

Call = Callable[[Job, Handler], Awaitable[object]]
Next = Callable[[], Awaitable[object]]
Middleware = Callable[[MessageFields, Next], Awaitable[object]]


class _TooLate(Exception):
    """The lease ran out while the message waited for a process, or for a place among those with
    a transaction: its handler does not begin."""


class Performer:
    """Knows how to call handlers; what they return or raise becomes an outcome here."""

    def __init__(
        self,
        core: AsyncCore,
        hand: Hand,
        tenure: Tenure,
        threads: Threads,
        processes: Processes,
        transactions: Transactions,
        middleware: Sequence[Middleware],
        hooks: Hooks,
    ) -> None:
        self._hooks = hooks
        self._hand = hand
        self._tenure = tenure
        self._processes = processes
        self._transactions = transactions
        self._core = core
        # For verbs on the handler's own connection only: it never opens one.
        self._thread_core = Core(core.engine, None, core.options)  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        self._thread_hand = ThreadHand(self._thread_core, hand, loop)
        self._threads = threads
        self._middleware = tuple(middleware)

    async def perform(self, job: Job, handler: Handler) -> Outcome:
        """Never raises for what the handler did; a cancellation is the worker's own doing."""
        try:
            if handler.ack == "first":
                await self._acknowledge(job)
            result = await self._run(job, handler)
        except asyncio.CancelledError as error:
            if job.interruption is not None:
                _uncancel()
            return after_error(job, handler, error)
        except (Defer, Fail) as outcome:
            return after_error(job, handler, outcome)
        except _TooLate:
            return LEAVE
        except NoTransaction as error:
            _log.warning(
                "no transaction for %s, its message is given back: %s",
                handler.name,
                error,
                extra=job.log_fields(),
            )
            return LEAVE if job.lost else GiveBack(_WITHOUT_TRANSACTION)
        except BaseException as error:  # sys.exit() too: it ends the handler, not the worker
            return await self._failed(job, handler, error)
        return after_return(job, handler, result)

    async def _acknowledge(self, job: Job) -> None:
        message = HeldMessage(job, self._hand)
        await message.complete()

    async def _failed(self, job: Job, handler: Handler, error: BaseException) -> Outcome:
        outcome = after_error(job, handler, error)
        if outcome is not LEAVE or handler.ack == "first":
            tell_failure(job, handler, error, outcome)
            await self._hooks.tell("error", job, error)
        return outcome

    async def _run(self, job: Job, handler: Handler) -> object:
        if handler.run == "process":
            async with self._processes.child() as child:
                return await self._run_after_a_wait(job, handler, child.call)
        call = self._call_async if handler.run == "async" else self._call_thread
        if handler.binding.transaction is None:
            return await self._in_time(job, handler, call)
        async with self._transactions.places:
            return await self._run_after_a_wait(job, handler, call)

    async def _run_after_a_wait(self, job: Job, handler: Handler, call: Call) -> object:
        if not await self._tenure.lasts(job):
            raise _TooLate
        return await self._in_time(job, handler, call)

    async def _in_time(self, job: Job, handler: Handler, call: Call) -> object:
        if handler.timeout is None:
            return await self._through_middleware(job, handler, call)
        self._tenure.limit(job, handler.timeout)
        async with asyncio.timeout(handler.timeout):
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
        message = HeldMessage(job, self._hand) if binding.message else None
        if binding.transaction is not None:
            return await self._call_in_transaction(job, handler, message)
        placed, named = _arguments(job, handler, message, None)
        return await handler.function(*placed, **named)

    async def _call_in_transaction(
        self, job: Job, handler: Handler, message: HeldMessage | None
    ) -> object:
        wanted = handler.binding.transaction_type
        async with self._transactions.begin_async(wanted) as connection:
            placed, named = _arguments(job, handler, message, connection)
            result = await handler.function(*placed, **named)
            if plan := self._settling(job, after_return(job, handler, result)):
                job.apart = True
                held(await self._core.run(plan, connection))
                job.in_transaction = True
        job.acted = True
        return result

    async def _call_thread(self, job: Job, handler: Handler) -> object:
        message = HeldThreadMessage(job, self._thread_hand) if handler.binding.message else None

        def call() -> Any:
            if handler.binding.transaction is not None:
                return self._call_thread_in_transaction(job, handler, message)
            placed, named = _arguments(job, handler, message, None)
            return handler.function(*placed, **named)

        return await self._threads.run(call)

    def _call_thread_in_transaction(
        self, job: Job, handler: Handler, message: HeldThreadMessage | None
    ) -> object:
        with self._transactions.begin(handler.binding.transaction_type) as connection:
            placed, named = _arguments(job, handler, message, connection)
            result = handler.function(*placed, **named)
            if plan := self._settling(job, after_return(job, handler, result)):
                job.apart = True
                held(self._thread_core.run(plan, connection))
                job.in_transaction = True
        job.acted = True
        return result

    def _settling(self, job: Job, outcome: Outcome) -> Plan[list[Settled]] | None:
        entry = entry_for(job, outcome, self._core.options.max_payload)
        return None if entry is None else settling_plan(self._core.engine, entry.verb, [entry])


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
    """The cancellation was for the handler; what comes after it is ours."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
