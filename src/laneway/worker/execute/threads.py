"""Threads for ordinary functions. They are daemons: one that never ends does not keep the process
alive."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple


class _Call(NamedTuple):
    function: Callable[[], Any]
    context: contextvars.Context
    result: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Threads:
    """Starts a thread when all are busy; the worker's concurrency bounds them. ``freed`` is called
    when an abandoned call has ended."""

    def __init__(self, freed: Callable[[], None] = lambda: None) -> None:
        self._freed = freed
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._count = 0
        self._busy = 0
        self.abandoned = 0
        """How many calls still run though nothing waits for them any more."""

    async def run(self, function: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        call = _Call(function, contextvars.copy_context(), loop.create_future(), loop)
        self._busy += 1
        if self._busy > self._count:
            self._count += 1
            name = f"laneway-handler-{self._count}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._calls.put(call)
        try:
            return await call.result
        except asyncio.CancelledError:
            if call.result.cancelled():
                self.abandoned += 1
            raise

    def close(self) -> None:
        for _ in range(self._count):
            self._calls.put(None)
        self._count = 0

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            result, error = None, None
            try:
                result = call.context.run(call.function)
            except BaseException as raised:  # the handler's, whatever it is: it decides the outcome
                error = raised
            with suppress(RuntimeError):  # the loop is closed: nothing waits
                call.loop.call_soon_threadsafe(self._finish, call, result, error)
            del call, result, error

    def _finish(self, call: _Call, result: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if call.result.cancelled():
            self.abandoned -= 1
            self._freed()
            return
        if error is None:
            call.result.set_result(result)
        elif isinstance(error, StopIteration | GeneratorExit):  # a coroutine must not raise these
            call.result.set_exception(RuntimeError(f"the handler raised {error!r}"))
        else:
            call.result.set_exception(error)
