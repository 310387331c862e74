"""The two sides of a comparison, with the same verbs: Laneway's library and a bare table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import psycopg
from psycopg.types.array import ListBinaryDumper

from laneway import ClaimStatus, NewMessage, Queue

from .bench import PAYLOAD

_WARM = 6  # psycopg prepares what it has run five times


class Drained(NamedTuple):
    messages: int
    statements: int


class Side(Protocol):
    """One client on one connection."""

    def create(self) -> None: ...

    def drafts(self, channels: Sequence[str]) -> Any:
        """A batch as the side wants it, made before the clock runs."""
        ...

    def publish(self, drafts: Any) -> None: ...

    def warm(self) -> None:
        """Lets the session plan what it will run."""
        ...

    def drain(self, batch: int) -> Drained:
        """Claims and completes until nothing is left."""
        ...

    def close(self) -> None: ...


Open = Callable[[str], Side]


class Ours:
    """The library as a user has it, with one connection."""

    def __init__(self, url: str) -> None:
        self._queue = Queue(url, pool_size=1)

    def create(self) -> None:
        self._queue.install()
        self._queue.upkeep()

    def drafts(self, channels: Sequence[str]) -> list[NewMessage]:
        return [NewMessage(PAYLOAD, channel) for channel in channels]

    def publish(self, drafts: list[NewMessage]) -> None:
        self._queue.publish_many(drafts)

    def warm(self) -> None:
        for _ in range(_WARM):
            self._queue.publish(b"", queue="warm", channel=self._queue.worker)
            self._queue.complete(self._queue.claim(queues=["warm"]))

    def drain(self, batch: int) -> Drained:
        messages = statements = 0
        while True:
            claim = self._queue.claim(batch)
            statements += 1
            if claim:
                self._queue.complete(claim)
                statements += 1
                messages += len(claim)
            elif claim.status is not ClaimStatus.BUSY:
                return Drained(messages, statements)

    def close(self) -> None:
        self._queue.close()


class Bare:
    """One table, as one would write it in an afternoon: no fairness, no fences, no limits."""

    _SQL = Path(__file__).with_name("bare.sql").read_text(encoding="utf-8")
    PUBLISH = "insert into job (channel, payload) select * from unnest(%s::text[], %s::bytea[])"
    CLAIM = """
        update job set status = 'leased', until = clock_timestamp() + interval '30 seconds',
            worker = 'worker', attempts = attempts + 1
        where id in (
            select id from job where status = 'ready' and due <= clock_timestamp()
            order by due, id limit %s::bigint for update skip locked)
        returning id, channel, attempts, payload"""
    COMPLETE = """
        with done as (
            delete from job where id = any(%s::bigint[]) and status = 'leased' returning *)
        insert into job_history (message_id, fence, attempt, first_published_at, published_at, due,
            claimed_at, ended_at, payload_size, terminal, dead, priority, queue, channel, kind,
            worker, outcome)
        select id, id, attempts, due, due, due, due, clock_timestamp(), octet_length(payload), true,
            false, 0, 'default', channel, '', worker, 'completed'
        from done"""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.adapters.register_dumper(list, ListBinaryDumper)

    def create(self) -> None:
        self._connection.execute(self._SQL.encode())

    def drafts(self, channels: Sequence[str]) -> tuple[list[str], list[bytes]]:
        return list(channels), [PAYLOAD] * len(channels)

    def publish(self, drafts: tuple[list[str], list[bytes]]) -> None:
        self._connection.execute(self.PUBLISH, drafts, binary=True)

    def warm(self) -> None:
        for _ in range(_WARM):
            self._claim(0)
            self._complete([0])

    def drain(self, batch: int) -> Drained:
        messages = statements = 0
        while rows := self._claim(batch):
            self._complete([row[0] for row in rows])
            statements += 2
            messages += len(rows)
        return Drained(messages, statements + 1)

    def close(self) -> None:
        self._connection.close()

    def _claim(self, batch: int) -> Sequence[tuple[Any, ...]]:
        return self._connection.execute(self.CLAIM, [batch], binary=True).fetchall()

    def _complete(self, ids: list[int]) -> None:
        self._connection.execute(self.COMPLETE, [ids], binary=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


SIDES: dict[str, Open] = {"ours": Ours, "bare": Bare}
