"""The sides of `make bench-peers`: Laneway and other queues on PostgreSQL, each as its own
documentation has it.

``python -m benchmarks.peer_sides SIDE create|publish|work|send URL …`` runs one of them in the
environment of that package, so nothing but the standard library is imported up here.

``work`` prints a line of JSON whenever its handler has run: how often, when first and last, and how
long each message took since it was sent, by the clock that all processes share.
"""

import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

SIZE = 200
_NAME = "bench"
_CHUNK = 500
_TELL_EVERY = 0.05

Send = Callable[[Sequence[str]], Awaitable[Any]]


class Handled:
    """What the handler has seen."""

    def __init__(self) -> None:
        self.count = 0
        self.first = self.last = 0
        self.waits: list[float] = []

    def add(self, payload: str) -> None:
        self.last = time.monotonic_ns()
        self.first = self.first or self.last
        self.waits.append((self.last - int(payload.split()[0])) / 1e6)
        self.count += 1

    def tell(self) -> None:
        told = 0
        while True:
            if (count := self.count) > told:
                waits = self.waits[told:count] if count <= 2_000 else []
                told = count
                line = {"n": count, "first": self.first, "last": self.last, "waits": waits}
                print(json.dumps(line), flush=True)
            time.sleep(_TELL_EVERY)


class PeerSide(Protocol):
    """One package. ``at_once``: how many messages a worker takes at once; None: as it comes."""

    async def create(self, url: str) -> None: ...

    async def sender(self, url: str) -> Send:
        """Publishes some payloads, on a connection that stays open."""
        ...

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None: ...


class Laneway:
    async def create(self, url: str) -> None:
        from laneway import AsyncQueue

        async with AsyncQueue(url) as queue:
            await queue.install()
            await queue.upkeep()

    async def sender(self, url: str) -> Send:
        from laneway import AsyncQueue

        queue = AsyncQueue(url)

        async def send(payloads: Sequence[str]) -> None:
            if len(payloads) == 1:
                await queue.publish(payloads[0])
            else:
                await queue.publish_many(payloads)

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        from laneway import AsyncQueue, Worker

        worker = Worker(AsyncQueue(url), **({} if at_once is None else {"concurrency": at_once}))

        async def handle(payload: str) -> None:
            handled.add(payload)

        worker.default_handler(handle)
        await worker.serve()


class PgQueuer:
    async def create(self, url: str) -> None:
        await (await self._open(url)).qm.queries.install()

    async def sender(self, url: str) -> Send:
        queries = (await self._open(url)).qm.queries

        async def send(payloads: Sequence[str]) -> None:
            texts = [payload.encode() for payload in payloads]
            await queries.enqueue([_NAME] * len(texts), texts, [0] * len(texts))

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        queuer = await self._open(url)

        async def handle(job: Any) -> None:
            handled.add(job.payload.decode())

        queuer.entrypoint(_NAME)(handle)
        await queuer.run(**({} if at_once is None else {"batch_size": at_once}))

    async def _open(self, url: str) -> Any:
        import asyncpg
        from pgqueuer import PgQueuer

        return PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))


class Pgmq:
    """It has no worker: the loop of its documentation, read with a visibility timeout, delete."""

    async def create(self, url: str) -> None:
        from pgmq import install_pgmq_from_sql

        install_pgmq_from_sql(dsn=url)
        await (await self._open(url)).create_queue(_NAME)

    async def sender(self, url: str) -> Send:
        queue = await self._open(url)

        async def send(payloads: Sequence[str]) -> None:
            if len(payloads) == 1:
                await queue.send(_NAME, {"text": payloads[0]})
            else:
                await queue.send_batch(_NAME, [{"text": payload} for payload in payloads])

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        queue = await self._open(url)

        async def handle(message: Any) -> None:
            handled.add(message.message["text"])

        while True:
            found = await queue.read_with_poll(_NAME, vt=30, qty=at_once or 1)
            for message in found:
                await handle(message)
            if len(found) == 1:
                await queue.delete(_NAME, found[0].msg_id)
            elif found:
                await queue.delete_batch(_NAME, [message.msg_id for message in found])

    async def _open(self, url: str) -> Any:
        from pgmq.async_queue import PGMQueue

        queue = PGMQueue(conn_string=url, init_extension=False)
        await queue.init()
        return queue


class Procrastinate:
    async def create(self, url: str) -> None:
        app, _ = await self._open(url, None)
        await app.schema_manager.apply_schema_async()

    async def sender(self, url: str) -> Send:
        _, task = await self._open(url, None)

        async def send(payloads: Sequence[str]) -> None:
            if len(payloads) == 1:
                await task.defer_async(text=payloads[0])
            else:
                await task.batch_defer_async(*({"text": payload} for payload in payloads))

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        app, _ = await self._open(url, handled)
        await app.run_worker_async(**({} if at_once is None else {"concurrency": at_once}))

    async def _open(self, url: str, handled: Handled | None) -> tuple[Any, Any]:
        from procrastinate import App, PsycopgConnector

        app = App(connector=PsycopgConnector(conninfo=url))
        await app.open_async()

        async def handle(text: str) -> None:
            if handled is not None:
                handled.add(text)

        return app, app.task(name=_NAME)(handle)


_chancy_handled: list[Handled] = []


async def chancy_handle(*, text: str) -> None:
    """Chancy finds a job's function by its module and name."""
    _chancy_handled[0].add(text)


class Chancy:
    """With its executor for async functions; its default runs a process for each job."""

    async def create(self, url: str) -> None:
        from chancy import Chancy

        async with Chancy(url) as chancy:
            await chancy.migrate()

    async def sender(self, url: str) -> Send:
        from chancy import Chancy, job

        chancy = await Chancy(url).__aenter__()
        made = job(queue=_NAME)(chancy_handle).job

        async def send(payloads: Sequence[str]) -> None:
            jobs = [made.with_kwargs(text=payload) for payload in payloads]
            if len(jobs) == 1:
                await chancy.push(jobs[0])
            else:
                async for _ in chancy.push_many(jobs):
                    pass

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        from chancy import Chancy, Queue, Worker

        _chancy_handled.append(handled)
        sys.modules["benchmarks.peer_sides"] = sys.modules["__main__"]
        more: dict[str, Any] = {}
        if at_once is not None:
            more = {"concurrency": at_once, "eager_polling": True}
        async with Chancy(url) as chancy:
            await chancy.declare(Queue(_NAME, executor=Chancy.Executor.Async, **more), upsert=True)
            async with Worker(chancy) as worker:
                await worker.wait_for_shutdown()


class Dbos:
    async def create(self, url: str) -> None:
        from dbos import DBOS

        self._launch(url, None)
        await DBOS.register_queue_async(_NAME)

    async def sender(self, url: str) -> Send:
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=url)

        async def send(payloads: Sequence[str]) -> None:
            options = {"workflow_name": _NAME, "queue_name": _NAME}
            for payload in payloads:
                await asyncio.to_thread(client.enqueue, options, payload)

        return send

    async def work(self, url: str, handled: Handled, at_once: int | None) -> None:
        from dbos import DBOS

        self._launch(url, handled)
        await DBOS.register_queue_async(_NAME)
        await asyncio.Event().wait()

    def _launch(self, url: str, handled: Handled | None) -> None:
        from dbos import DBOS

        DBOS(config={"name": _NAME, "system_database_url": url, "log_level": "WARNING"})

        async def handle(text: str) -> None:
            if handled is not None:
                handled.add(text)

        DBOS.workflow(name=_NAME)(handle)
        DBOS.launch()


SIDES: dict[str, type[PeerSide]] = {
    "laneway": Laneway,
    "pgqueuer": PgQueuer,
    "pgmq": Pgmq,
    "procrastinate": Procrastinate,
    "chancy": Chancy,
    "dbos": Dbos,
}


def _payload() -> str:
    return f"{time.monotonic_ns()} ".ljust(SIZE, "x")


async def _publish(side: PeerSide, url: str, count: int) -> None:
    send = await side.sender(url)
    for first in range(0, count, _CHUNK):
        await send([_payload() for _ in range(min(_CHUNK, count - first))])


async def _send(side: PeerSide, url: str, count: int) -> None:
    """One after the other, so far apart that the worker is idle again."""
    send = await side.sender(url)
    for _ in range(count):
        await asyncio.sleep(random.uniform(0.05, 0.3))
        await send([_payload()])


def main(arguments: Sequence[str]) -> None:
    name, what, url, *rest = arguments
    side, number = SIDES[name](), int(rest[0]) if rest else None
    if what == "create":
        asyncio.run(side.create(url))
    elif what == "work":
        handled = Handled()
        threading.Thread(target=handled.tell, daemon=True).start()
        asyncio.run(side.work(url, handled, number))
    else:
        asyncio.run((_publish if what == "publish" else _send)(side, url, number or 0))
    sys.stdout.flush()
    os._exit(0)  # threads of some packages would wait for more work


if __name__ == "__main__":
    main(sys.argv[1:])
