"""MariaDB: Laneway against one plain table on the same server, and whether the cost of a claim
stays flat: `python -m benchmarks.mariadb`."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from statistics import median
from typing import Any, Protocol

import pymysql

from laneway import ClaimStatus, NewMessage, Queue
from laneway.dev.embedded import EmbeddedMariaDB, install_mariadb
from laneway.drivers.mysql.url import connect_options, database_of

from .bench import PAYLOAD, say
from .report import Table, show, verdict

BATCH = 100
CHUNK = 1_000
TARGETS = {1: 0.5, 1_000: 0.3}
FLAT = 1.1
_READS = "show session status like 'Handler_read%'"
SETTINGS = {"innodb_buffer_pool_size": "512M", "innodb_log_file_size": "512M"}


class Side(Protocol):
    def create(self) -> None: ...

    def publish(self, channels: Sequence[str]) -> None: ...

    def drain(self) -> int: ...

    def close(self) -> None: ...


class Ours:
    """The library as a user would use it, with one connection."""

    def __init__(self, url: str) -> None:
        self._queue = Queue(url, pool_size=1)

    def create(self) -> None:
        self._queue.install()

    def publish(self, channels: Sequence[str]) -> None:
        self._queue.publish_many([NewMessage(PAYLOAD, channel) for channel in channels])

    def drain(self) -> int:
        messages = 0
        while True:
            claim = self._queue.claim(BATCH)
            if claim:
                self._queue.complete(claim)
                messages += len(claim)
            elif claim.status is not ClaimStatus.BUSY:
                return messages

    def close(self) -> None:
        self._queue.close()


class Bare:
    """One table, as one might write it in an afternoon: no fairness, fences or limits."""

    _JOB = """create table job (id bigint auto_increment primary key, channel varchar(255) not null,
        status varchar(8) not null default 'ready',
        due datetime(6) not null default (utc_timestamp(6)),
        until datetime(6), worker varchar(255), attempts int not null default 0,
        payload longblob not null, key job_ready (status, due, id)) engine = InnoDB"""
    _HISTORY = """create table job_history (id bigint auto_increment primary key,
        message_id bigint not null, fence bigint, attempt bigint not null,
        first_published_at datetime(6), published_at datetime(6), due datetime(6),
        claimed_at datetime(6), ended_at datetime(6) not null, payload_size bigint,
        terminal boolean not null, dead boolean not null, priority tinyint,
        queue varchar(255) not null, channel varchar(255) not null, kind varchar(255) not null,
        worker varchar(255), outcome varchar(16) not null, key (message_id)) engine = InnoDB"""
    _PUBLISH = "insert into job (channel, payload) values (%s, %s)"
    _CLAIM = """select id, channel, attempts, payload from job
        where status = 'ready' and due <= utc_timestamp(6)
        order by due, id limit %s for update skip locked"""
    _LEASE = """update job set status = 'leased', worker = 'worker', attempts = attempts + 1,
        until = utc_timestamp(6) + interval 30 second where id in %s"""
    _TELL = """insert into job_history (message_id, fence, attempt, first_published_at,
            published_at, due, claimed_at, ended_at, payload_size, terminal, dead, priority, queue,
            channel, kind, worker, outcome)
        select id, id, attempts, due, due, due, due, utc_timestamp(6), octet_length(payload), true,
            false, 0, 'default', channel, '', worker, 'completed'
        from job where id in %s and status = 'leased'"""
    _DELETE = "delete from job where id in %s and status = 'leased'"

    def __init__(self, url: str) -> None:
        self._connection = connect(url)

    def create(self) -> None:
        self._run(self._JOB)
        self._run(self._HISTORY)

    def publish(self, channels: Sequence[str]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(self._PUBLISH, [(channel, PAYLOAD) for channel in channels])
        self._connection.commit()

    def drain(self) -> int:
        messages = 0
        while rows := self._run(self._CLAIM, BATCH):
            ids = [row[0] for row in rows]
            self._run(self._LEASE, ids)
            self._connection.commit()
            self._run(self._TELL, ids)
            self._run(self._DELETE, ids)
            self._connection.commit()
            messages += len(ids)
        return messages

    def close(self) -> None:
        self._connection.close()

    def _run(self, text: str, *params: Any) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(text, params or None)
            return cursor.fetchall()


SIDES: dict[str, Callable[[str], Side]] = {"ours": Ours, "bare": Bare}


def connect(url: str, **options: Any) -> Any:
    connection = pymysql.connect(database=database_of(url), **(connect_options(url) | options))
    with connection.cursor() as cursor:
        cursor.execute("set session transaction isolation level read committed")
    return connection


class Bench:
    """A running server, and new databases on it."""

    def __init__(self, server: EmbeddedMariaDB) -> None:
        self.server = server
        self._numbers = count(1)

    @contextmanager
    def database(self) -> Iterator[str]:
        name = f"bench_{next(self._numbers)}"
        url = self.server.create_database(name)
        yield url
        self.server.execute(f"drop database {name}")


def drained(bench: Bench, side: str, channels: int, messages: int) -> tuple[float, float]:
    """Messages a second: published in batches of a thousand, and claimed and completed."""
    with bench.database() as url:
        client = SIDES[side](url)
        client.create()
        names = [f"tenant {number % channels}" for number in range(messages)]
        start = time.perf_counter()
        for place in range(0, messages, CHUNK):
            client.publish(names[place : place + CHUNK])
        published = time.perf_counter()
        done = client.drain()
        ended = time.perf_counter()
        client.close()
    assert done == messages, (done, messages)
    return messages / (published - start), messages / (ended - published)


def throughput(bench: Bench, messages: int, rounds: int) -> Table:
    columns = ["channels", "what", "ours msg/s", "bare msg/s", "ratio", "target", ""]
    table = Table(f"MariaDB: batches of {BATCH}, one connection, ours / bare table", columns)
    for channels, target in TARGETS.items():
        say(f"MariaDB, {channels:,} channels")
        runs: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side, done in runs.items():
                done.append(drained(bench, side, channels, messages))
        for part, what in enumerate(("publish", "claim and complete")):
            ours, bare = (median(run[part] for run in done) for done in runs.values())
            wanted = target if part else None
            table.add(channels, what, ours, bare, ours / bare, wanted, verdict(ours / bare, wanted))
    return table


class Counted(Queue):
    """A client that can tell how many rows its one session has read."""

    def rows_read(self) -> int:
        runner: Any = self.database._runner
        connection = runner._pool.acquire()
        with connection.cursor() as cursor:
            cursor.execute(_READS)
            total = sum(int(value) for _, value in cursor.fetchall())
        runner._pool.release(connection)
        return total


def rows_examined(url: str, channels: int, messages: int, whole: bool) -> tuple[float, float]:
    """Rows read for each claimed and each completed message: over some claims or, because wakes of
    many channels are read in advance, over the whole drain."""
    with Counted(url, pool_size=1, upkeep_every=None) as queue:
        queue.install()
        for place in range(0, messages, CHUNK):
            numbers = range(place, min(place + CHUNK, messages))
            queue.publish_many([NewMessage(b"x", f"c{n % channels}") for n in numbers])
        if not whole:
            _cycle(queue, 2)
        return _cycle(queue, messages // BATCH if whole else 7)


def _cycle(queue: Counted, batches: int) -> tuple[float, float]:
    claims = completions = 0
    for _ in range(batches):
        before = queue.rows_read()
        claim = queue.claim(BATCH)
        between = queue.rows_read()
        assert len(claim) == BATCH, claim.status
        queue.complete(claim)
        claims += between - before
        completions += queue.rows_read() - between
    return claims / batches / BATCH, completions / batches / BATCH


def flat(bench: Bench, sizes: Sequence[int], channel_counts: Sequence[int]) -> Table:
    columns = ["messages", "channels", "read to claim", "read to complete", "of the first", ""]
    table = Table("MariaDB: rows read for one message (Handler_read), batches of 100", columns)
    shapes = [[(size, 10, False) for size in sizes], [(3 * n, n, True) for n in channel_counts]]
    for group in shapes:
        first = 0.0
        for messages, channels, whole in group:
            say(f"MariaDB, {messages:,} messages in {channels:,} channels")
            with bench.database() as url:
                claim, complete = rows_examined(url, channels, messages, whole)
            first = first or claim
            said = "ok" if claim / first <= FLAT else "grows"
            table.add(messages, channels, claim, complete, claim / first, said)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller: under a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    if not install_mariadb():
        say("MARIADB IS NOT MEASURED: no mariadbd here, and it could not be installed")
        return
    messages, rounds = (5_000, 1) if options.quick else (20_000, 3)
    sizes, channel_counts = (
        ([1_000, 50_000], [100, 1_000])
        if options.quick
        else (
            [1_000, 10_000, 100_000, 1_000_000],
            [1_000, 10_000, 100_000],
        )
    )
    with EmbeddedMariaDB(settings=SETTINGS) as server:
        bench = Bench(server)
        tables = [throughput(bench, messages, rounds), flat(bench, sizes, channel_counts)]
    show(tables, as_json=options.json)


if __name__ == "__main__":
    main()
