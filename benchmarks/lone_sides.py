"""The sides of `benchmarks.lone`: one message published, claimed and completed on an idle queue.

``python -m benchmarks.lone_sides SIDE URL COUNT`` measures one of them in the environment of that
package and prints a line of JSON, so nothing but the standard library is imported up here.

The server's time is what the kernel has charged to the side's backends (``/proc/PID/schedstat``),
read before and after each call; the client's is the processor time of this process.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

_WARM = 200
_NAME = "lone"
OPERATIONS = ("publish", "claim", "complete", "empty claim")


class LoneSide(Protocol):
    """One client with one connection."""

    def open(self, url: str) -> None: ...

    def backends(self) -> Sequence[int]: ...

    def publish(self) -> None: ...

    def claim(self) -> Any:
        """What was claimed, or None."""
        ...

    def complete(self, claimed: Any) -> None: ...


class Bare:
    """A table, its index and three statements."""

    _TABLE = """
        create table job (
            id bigserial primary key, channel text not null, payload jsonb not null,
            due timestamptz not null default now(), leased timestamptz);
        create index on job (due, id) where leased is null"""
    _PUBLISH = "insert into job (channel, payload) values (%s, %s)"
    _CLAIM = """
        update job set leased = now() where id = (
            select id from job where leased is null and due <= now()
            order by due, id limit 1 for update skip locked)
        returning id, payload"""
    _COMPLETE = "delete from job where id = %s"

    def open(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute(self._TABLE, prepare=False)

    def backends(self) -> Sequence[int]:
        return [self._connection.info.backend_pid]

    def publish(self) -> None:
        self._connection.execute(self._PUBLISH, ("c0", '{"a": 1}'))

    def claim(self) -> Any:
        return self._connection.execute(self._CLAIM).fetchone()

    def complete(self, claimed: Any) -> None:
        self._connection.execute(self._COMPLETE, claimed[:1])


class Laneway:
    def open(self, url: str) -> None:
        import psycopg

        from laneway import Queue

        self._queue = Queue(url, pool_size=1)
        self._queue.install()
        self._queue.upkeep()
        self._queue.publish({"a": 1}, channel="c0")
        self._queue.claim()[0].complete()
        with psycopg.connect(url) as connection:
            self._pids = [
                row[0]
                for row in connection.execute(
                    "select pid from pg_stat_activity where datname = current_database()"
                    " and backend_type = 'client backend' and pid <> pg_backend_pid()"
                )
            ]

    def backends(self) -> Sequence[int]:
        return self._pids

    def publish(self) -> None:
        self._queue.publish({"a": 1}, channel="c0")

    def claim(self) -> Any:
        claim = self._queue.claim()
        return claim[0] if claim else None

    def complete(self, claimed: Any) -> None:
        claimed.complete()


class Pgmq:
    """Its SQL functions, as its client calls them."""

    def open(self, url: str) -> None:
        import psycopg
        from pgmq import install_pgmq_from_sql

        install_pgmq_from_sql(dsn=url)
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute("select pgmq.create(%s)", (_NAME,))

    def backends(self) -> Sequence[int]:
        return [self._connection.info.backend_pid]

    def publish(self) -> None:
        self._connection.execute("select pgmq.send(%s, %s::jsonb)", (_NAME, '{"a": 1}'))

    def claim(self) -> Any:
        return self._connection.execute("select * from pgmq.read(%s, 30, 1)", (_NAME,)).fetchone()

    def complete(self, claimed: Any) -> None:
        self._connection.execute("select pgmq.delete(%s, %s::bigint)", (_NAME, claimed[0]))


class PgQueuer:
    """Its loop runs as long as a call."""

    def open(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._open(url))

    async def _open(self, url: str) -> None:
        import inspect
        import uuid

        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self._connection = await asyncpg.connect(url)
        self._queries = Queries(AsyncpgDriver(self._connection))
        await self._queries.install()
        terms = _pgqueuer_terms()
        known = inspect.signature(terms).parameters
        given = {
            "retry_after": timedelta(0),
            "serialized": False,
            "serialized_dispatch": False,
            "concurrency_limit": 0,
            "requests_per_second": float("inf"),
        }
        self._entrypoints = {_NAME: terms(**{n: v for n, v in given.items() if n in known})}
        self._worker = uuid.uuid4()

    def backends(self) -> Sequence[int]:
        return [self._connection.get_server_pid()]

    def publish(self) -> None:
        self._loop.run_until_complete(self._queries.enqueue(_NAME, b'{"a": 1}'))

    def claim(self) -> Any:
        wait = timedelta(seconds=30)
        call = self._queries.dequeue(1, self._entrypoints, self._worker, None, wait)
        jobs = self._loop.run_until_complete(call)
        return jobs[0] if jobs else None

    def complete(self, claimed: Any) -> None:
        self._loop.run_until_complete(self._queries.log_jobs([(claimed, "successful", None)]))


def _pgqueuer_terms() -> Any:
    """The class has moved from module to module over its versions."""
    import importlib
    import pkgutil

    import pgqueuer

    for found in pkgutil.walk_packages(pgqueuer.__path__, "pgqueuer."):
        try:
            module = importlib.import_module(found.name)
        except ImportError:
            continue  # adapters for drivers that are not installed
        if hasattr(module, "EntrypointExecutionParameter"):
            return module.EntrypointExecutionParameter
    raise RuntimeError("this version of pgqueuer has no EntrypointExecutionParameter")


SIDES: dict[str, type[LoneSide]] = {
    "bare": Bare,
    "laneway": Laneway,
    "pgmq": Pgmq,
    "pgqueuer": PgQueuer,
}


class Clock:
    """Adds up what calls cost."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._files = [Path(f"/proc/{pid}/schedstat") for pid in pids]
        self.server = dict.fromkeys(OPERATIONS, 0.0)
        self.client = dict.fromkeys(OPERATIONS, 0.0)

    def time(self, operation: str, call: Callable[[], Any]) -> Any:
        server, client = self._server(), time.process_time()
        answer = call()
        self.client[operation] += time.process_time() - client
        self.server[operation] += self._server() - server
        return answer

    def _server(self) -> float:
        return sum(int(file.read_text().split()[0]) for file in self._files) / 1e9


def measure(side: LoneSide, url: str, count: int) -> dict[str, dict[str, float]]:
    """Microseconds an operation, of the server and of the client."""
    side.open(url)
    clock = Clock(side.backends())
    for number in range(_WARM + count):
        if number == _WARM:
            clock = Clock(side.backends())
        clock.time("publish", side.publish)
        claimed = clock.time("claim", side.claim)
        assert claimed is not None
        clock.time("complete", partial(side.complete, claimed))
    for _ in range(count):
        assert clock.time("empty claim", side.claim) is None
    each = {"server": clock.server, "client": clock.client}
    return {who: {op: 1e6 * spent[op] / count for op in OPERATIONS} for who, spent in each.items()}


def main(arguments: Sequence[str]) -> None:
    side, url, count = arguments
    print(json.dumps(measure(SIDES[side](), url, int(count))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
