"""What does a look cost when everything waits? Time and pages of every look of an operator, with
ten million messages, a million unread wakes and a million channels."""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import RawCursor

from benchmarks.report import Table, show
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.runner import drive
from laneway.engines.postgresql.engine import PostgresqlEngine
from laneway.engines.postgresql.schema import install_sql
from laneway.inspection import ChannelFilter, MessageFilter
from laneway.model import DeadLetterFilter
from laneway.operations import MinuteFilter
from laneway.plan import Plan, Row, Statement

QUEUE = "orders"
_ROUNDS = 5
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Waiting:
    """How much waits. Every channel has a turn and one unread wake."""

    messages: int = 10_000_000
    channels: int = 1_000_000
    dead: int = 1_000_000
    leases: int = 20_000
    days: int = 14


QUICK = Waiting(100_000, 10_000, 10_000, 2_000, 1)

_FILL = (
    # Channels, one in a thousand of them limited.
    """insert into laneway.channel (id, queue, name, concurrency, paused)
    select laneway.channel_id_v1('orders', name), 'orders', name,
        case when n % 1000 = 0 then 2 end, n % 1000 = 1
    from generate_series(1, {channels}) n
    cross join lateral (select 'tenant-' || to_char(n, 'FM0000000') as name) x""",
    """insert into laneway.message (id, channel_id, due, published_at, first_published_at,
        max_attempts, priority, queue, channel, kind, content_type, payload)
    select nextval('laneway.message_id'), c.id, at, at, at, 20, 0, c.queue, c.name,
        'kind-' || (i % 20), 'application/json', convert_to('{{"order": ' || i || '}}', 'UTF8')
    from generate_series(1, {each}) i cross join laneway.channel c
    cross join lateral (select now() - interval '2 hours' + i * interval '1 second' as at) t""",
    """insert into laneway.token (channel_id, version, turn, n, leased, credit, skips, queue, pri,
        due, mid)
    select c.id, 1, now() - interval '1 hour' + (row_number() over ()) * interval '1 microsecond',
        {each} - 1, 0, 0, 0, c.queue, array[0], array[now() - interval '2 hours'], array[0]
    from laneway.channel c""",
    """insert into laneway.wake (at, channel_id, due, message_id, n, priority, queue, channel)
    select now() - interval '1 hour' + (row_number() over ()) * interval '1 microsecond', c.id,
        now() - interval '1 hour', 0, 1, 0, c.queue, c.name from laneway.channel c""",
    """insert into laneway.lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
    select m.id, 1, now() + interval '1 hour', now(), m.channel_id, false, 'w'
    from laneway.message m order by m.id desc limit {leases}""",
    """insert into laneway.dead (id, died_at, published_at, first_published_at, attempt,
        max_attempts, priority, queue, channel, kind, content_type, reason, error_type, error,
        payload)
    select nextval('laneway.message_id'), now() - ({dead} - n) * interval '1 ms', now(), now(), 20,
        20, 0, 'orders', 'tenant-' || to_char(n % {channels}, 'FM0000000'), 'kind-' || (n % 20),
        'application/json', case when n < 5 then 'rare' else 'max_attempts' end,
        case when n < 5 then 'Rare' else 'ValueError' end, 'no', '1'
    from generate_series(1, {dead}) n""",
    """insert into laneway.dead_total (queue, channel, n)
    select d.queue, d.channel, count(*) from laneway.dead d group by d.queue, d.channel""",
    """insert into laneway.minute (span, at, queue, kind, published, started, completed, depth,
        waits, runs)
    select s.span, t.at, 'orders', 'kind-' || k, 100, 100, 100, 1000,
        array_fill(8::bigint, array[13]), array_fill(8::bigint, array[13])
    from (values (1::smallint, interval '1 minute'), (60, interval '1 hour')) s(span, length)
    cross join lateral generate_series(
        date_trunc('hour', now()) - {days} * interval '1 day', now(), s.length) t(at)
    cross join generate_series(1, 20) k on conflict do nothing""",
)


def looks(now: datetime, first: int) -> dict[str, Callable[[Any], Plan[Any]]]:
    """Every look, of any engine. ``first`` is a message's id."""
    one = "tenant-0000777"
    return {
        "stats": lambda e: e.inspection.queue_stats(),
        "channel_stats, 20": lambda e: e.inspection.channel_stats(None, None, 20),
        "channels, 50": lambda e: e.inspection.channels(ChannelFilter(), 50, None),
        "channels, 50, next page": lambda e: e.inspection.channels(ChannelFilter(), 50, '["", ""]'),
        "channels, by prefix": lambda e: e.inspection.channels(
            ChannelFilter(QUEUE, prefix=one[:-1]), 50, None
        ),
        "channels, paused": lambda e: e.inspection.channels(ChannelFilter(paused=True), 50, None),
        "channels, limited": lambda e: e.inspection.channels(ChannelFilter(limited=True), 50, None),
        "channel, by name": lambda e: e.inspection.channels(
            ChannelFilter(QUEUE, channel=one), 1, None
        ),
        "messages, 100": lambda e: e.inspection.messages(MessageFilter(), 100, 0),
        "messages of an absent kind": lambda e: e.inspection.messages(
            MessageFilter(kind="none"), 100, 0
        ),
        "messages of a channel": lambda e: e.inspection.messages(MessageFilter(QUEUE, one), 100, 0),
        "messages, scheduled": lambda e: e.inspection.messages(
            MessageFilter(state="scheduled"), 100, 0
        ),
        "messages, leased, absent kind": lambda e: e.inspection.messages(
            MessageFilter(kind="none", state="leased"), 100, 0
        ),
        "messages, dead, absent kind": lambda e: e.inspection.messages(
            MessageFilter(kind="none", state="dead"), 100, 0
        ),
        "message": lambda e: e.inspection.message(first),
        "history of a message": lambda e: e.inspection.history(first),
        "dead letters, 100": lambda e: e.dead_letters.dead_letters(
            DeadLetterFilter(QUEUE), 100, None
        ),
        "dead letters, counted to 1,000": lambda e: e.dead_letters.count_dead_letters(
            DeadLetterFilter(QUEUE), 1000
        ),
        "minutes, an hour": lambda e: e.inspection.minutes(MinuteFilter(now - _DAY / 24, now)),
        "minutes, an hour, by kind": lambda e: e.inspection.minutes(
            MinuteFilter(now - _DAY / 24, now, by="kind")
        ),
        "minutes, 14 days by the hour": lambda e: e.inspection.minutes(
            MinuteFilter(now - 14 * _DAY, now, timedelta(hours=1))
        ),
        "totals": lambda e: e.inspection.totals(),
    }


class Explained:
    """A connection to PostgreSQL that explains every statement: milliseconds in the database, those
    of them on a processor (on a busy machine the others say little), and pages touched."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.milliseconds, self.busy, self.pages = 0.0, 0.0, 0

    def run(self, plan: Plan[Any]) -> Any:
        self.milliseconds, self.busy, self.pages = 0.0, 0.0, 0
        return drive(plan, self._execute)

    def _execute(self, statement: Statement) -> Sequence[Row]:
        with RawCursor(self.connection) as cursor:
            explain = f"explain (analyze, buffers, timing off, format json) {statement.sql}"
            before = self._on_processor()
            cursor.execute(explain.encode(), statement.params)
            self.busy += self._on_processor() - before
            ((found,),) = cursor.fetchall()
            (cost,) = found if isinstance(found, list) else json.loads(found)
            self.milliseconds += cost["Execution Time"] + cost["Planning Time"]
            top = cost["Plan"]
            self.pages += top["Shared Hit Blocks"] + top["Shared Read Blocks"]
            cursor.execute(statement.sql.encode(), statement.params)
            return cursor.fetchall()

    def _on_processor(self) -> float:
        text = Path(f"/proc/{self.connection.info.backend_pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e6


def fill(connection: psycopg.Connection[Any], size: Waiting) -> None:
    sizes = vars(size) | {"each": size.messages // size.channels}
    for part in _FILL:
        connection.execute(part.format(**sizes).encode())
    connection.execute("vacuum analyze")
    # There is no history of these: count them as upkeep does in a schema that is in use.
    connection.execute("update laneway.counting set begun = false, xid = 0, to_xid = null")
    connection.execute("select laneway.count_v1()")


def measure(url: str) -> Iterator[tuple[str, float, float, int]]:
    """The middle one of some rounds: milliseconds, milliseconds on a processor, pages."""
    engine = PostgresqlEngine()
    explained = Explained(url)
    with closing(explained.connection):
        for name, look in looks(datetime.now(UTC), 777).items():
            rounds = []
            for _ in range(_ROUNDS):
                explained.run(look(engine))
                rounds.append((explained.milliseconds, explained.busy, explained.pages))
            yield name, *sorted(rounds)[_ROUNDS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of it")
    size = QUICK if parser.parse_args().quick else Waiting()
    settings = {"shared_buffers": "2GB", "max_wal_size": "8GB", "synchronous_commit": "off"}
    with EmbeddedPostgres(version=18, settings=settings) as server:
        url = server.create_database("looks")
        started = time.monotonic()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(install_sql().encode())
            connection.execute("set synchronous_commit = off")
            fill(connection, size)
            begun = time.monotonic()
            connection.execute("select laneway.count_v1()")
        print(f"{size}, filled in {begun - started:,.0f} s on PostgreSQL")
        table = Table("PostgreSQL: a look", ("look", "ms", "ms on a processor", "pages"))
        for name, milliseconds, busy, pages in measure(url):
            table.add(name, round(milliseconds, 1), round(busy, 1), pages)
        show([table], as_json=False)


if __name__ == "__main__":
    main()
