"""Which modules does one message touch in a running worker?

``python -m benchmarks.touched_modules`` starts a worker with an async handler on a throwaway
PostgreSQL, publishes messages one at a time, and prints every module of ``laneway`` of which at
least one function ran for a message, in the thread of the worker or in any that it started.

Counting begins with the claim that returns the message and ends when its completion is written and
the worker has taken note of that. Left out are what the worker does anyway: start-up, claims that
return nothing, the claim loop once it has gone on to the next claim, and whatever ran for some of
the messages only (upkeep, schedules and other timers). The publisher runs in another thread, and
the heartbeat in another process; neither is counted. The worker has no observers, middleware or
hooks, and the handler takes only the payload.

Two totals: the worker's own modules, ``laneway.worker``, and all, with client, engine and driver.
"""

import asyncio
import sys
import threading
from datetime import timedelta
from types import FrameType
from typing import Any

from laneway import AsyncQueue, Queue, Worker

from .bench import running

MESSAGES = 10
_PACKAGE = "laneway"


class Recorder:
    """A profile function that collects the modules of one message after the other."""

    def __init__(self, engine: object) -> None:
        self._claim = type(engine).claim.__code__  # type: ignore[attr-defined]
        self._complete = type(engine).complete.__code__  # type: ignore[attr-defined]
        self.messages: list[set[str]] = []
        self.settled = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._touched: set[str] = set()
        self._claim_frame: FrameType | None = None
        self._claimer: object = None
        self._writer: object = None
        self._claimed = self._gone_on = self._written = False

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith(f"{_PACKAGE}."):
            return
        task = _current_task()
        if self._written and task is not self._writer:
            self.messages.append(self._touched)
            self._begin()
            self.settled.set()
        if frame.f_code is self._claim:
            self._note_claim(frame, event, task, result)
        if self._claim_frame is None or (self._gone_on and task is self._claimer):
            return
        self._touched.add(module)
        # A plan returns statements, and its result at last.
        if self._claimed and frame.f_code is self._complete and isinstance(result, list):
            self._writer, self._written = task, True

    def _note_claim(self, frame: FrameType, event: str, task: object, result: Any) -> None:
        if event == "call" and frame is not self._claim_frame:
            if self._claimed:
                self._gone_on = True
            else:
                self._begin()
                self._claim_frame, self._claimer = frame, task
        elif event == "return" and getattr(result, "rows", None):
            self._claimed = True


def _current_task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        return threading.current_thread()


def touched_modules(url: str, *, schema: str = "laneway", messages: int = MESSAGES) -> list[str]:
    """Those that every one of ``messages`` touched, on an installed queue that is empty."""
    # On a busy machine upkeep could coincide with every message.
    client = AsyncQueue(url, schema=schema, upkeep_every=timedelta(hours=1))
    worker = Worker(client, concurrency=2)

    @worker.default_handler
    async def handle(payload: object) -> None: ...

    with Queue(url.replace("+asyncpg", ""), schema=schema) as queue:
        recorder = Recorder(queue._core.engine)
        ready = threading.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            ready.set()
            await worker.serve()

        def work() -> None:
            threading.setprofile(recorder)
            sys.setprofile(recorder)
            try:
                asyncio.run(serve())
            finally:
                sys.setprofile(None)
                threading.setprofile(None)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            ready.wait()
            for number in range(messages):
                recorder.settled.clear()
                queue.publish({"number": number})
                if not recorder.settled.wait(30):
                    raise TimeoutError("the message was not settled in time")
        finally:
            loops[0].call_soon_threadsafe(worker.stop)
            thread.join()
    return sorted(set.intersection(*recorder.messages))


def main() -> None:
    with running() as bench, bench.database() as url:
        found = touched_modules(url)
    own = [name for name in found if name.startswith(f"{_PACKAGE}.worker")]
    for name in found:
        print(name)
    print(f"{len(own)} modules of the worker, {len(found)} with client, engine and driver")


if __name__ == "__main__":
    main()
