"""MariaDB: what does a look cost when everything waits? Time and rows of every look of an operator,
with a million messages, a hundred thousand unread wakes and a hundred thousand channels."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB, install_mariadb
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.mysql.url import connect_options, database_of
from laneway.drivers.runner import drive
from laneway.engines.mysql import MysqlEngine
from laneway.inspection import ChannelFilter, MessageFilter
from laneway.model import DeadLetterFilter
from laneway.operations import MinuteFilter
from laneway.plan import Plan, Row, Statement

from .report import Table, show

QUEUE = "orders"
_ROUNDS = 5
_DAY = timedelta(days=1)
SETTINGS: dict[str, str | int] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_log_file_size": "1G",
    "innodb_flush_log_at_trx_commit": 0,
}


class Waiting(NamedTuple):
    """How much waits. Every channel has a turn and one unread wake."""

    messages: int = 1_000_000
    channels: int = 100_000
    dead: int = 20_000
    leases: int = 20_000
    minutes: int = 14 * 1_440


QUICK = Waiting(10_000, 2_000, 500, 1_500, 600)

_NAME = "concat('tenant-', lpad({n} mod {channels}, 7, '0'))"
_ID = "unhex(substr(sha2(concat(6, ':orders', " + _NAME + "), 256), 1, 32))"
# MariaDB's tables of numbers are unknown to MySQL.
_NUMBERS = (
    "json_table(concat('[0', repeat(',0', {n} - 1), ']'), '$[*]' columns (seq for ordinality))"
)
_FILL = (
    """insert into laneway_message (channel_id, due, published_at, first_published_at, max_attempts,
        priority, queue, channel, kind, content_type, payload)
    select {id}, {now} - 7200000000 + seq, {now} - 7200000000 + seq, {now} - 7200000000 + seq,
        20, 0, 'orders', {name}, concat('kind-', seq mod 20), 'application/json', repeat('x', 100)
    from {numbers[messages]} n""",
    """insert into laneway_channel (id, queue, name, concurrency, paused, turn, n, oldest)
    select {id}, 'orders', {name}, case when seq mod 1000 = 0 then 2 end, seq mod 1000 = 1,
        {now} - 3600000000 + seq, {each} - 1, {now} - 7200000000 + seq
    from {numbers[channels]} n""",
    """insert into laneway_wake (at, channel_id, due, message_id, n, freed, priority, ahead, queue,
        channel)
    select {now} - 3600000000 + seq, {id}, {now} - 3600000000 + seq, seq, 1, 0, 0, 0, 'orders',
        {name}
    from {numbers[channels]} n""",
    """insert into laneway_lease (message_id, fence, until, claimed_at, channel_id, counted, worker)
    select m.id, 1, {now} + 3600000000, {now}, m.channel_id, false, 'w'
    from laneway_message m order by m.id desc limit {leases}""",
    """insert into laneway_dead (id, died_at, published_at, first_published_at, attempt,
        max_attempts, priority, queue, channel, kind, content_type, reason, error_type, error,
        payload)
    select 100000000 + seq, {now} - ({dead} - seq) * 1000, {now}, {now}, 20, 20, 0, 'orders',
        {name}, concat('kind-', seq mod 20), 'application/json',
        if(seq < 5, 'rare', 'max_attempts'), if(seq < 5, 'Rare', 'ValueError'), 'no', '1'
    from {numbers[dead]} n""",
    "insert into laneway_dead_count (queue, channel, n) select queue, channel, 1 from laneway_dead",
    """insert into laneway_kind_count (queue, kind, live, dead)
    select 'orders', concat('kind-', seq - 1), {messages} / 20, {dead} / 20
    from {numbers[kinds]} k""",
    """insert into laneway_minute (span, at, queue, kind, published, completed, w3, r3, depth)
    select 1, {now} div 60000000 - m.seq, 'orders', concat('kind-', k.seq), 100, 100, 100, 100, 1000
    from {numbers[minutes]} m, {numbers[kinds]} k""",
    """insert into laneway_minute (span, at, queue, kind, published, completed, w3, r3, depth)
    select 60, at div 60 * 60, queue, kind, sum(published), sum(completed), sum(w3), sum(r3), 1000
    from laneway_minute where span = 1 group by at div 60 * 60, queue, kind""",
    """update laneway_fold set known = true, message_id = 200000000, seen = 200000000,
        counted_at = {now}, seen_at = {now}""",
)


def looks(now: datetime, first: int) -> dict[str, Callable[[MysqlEngine], Plan[Any]]]:
    one = "tenant-0000777"
    hour = now - _DAY / 24
    return {
        "stats": lambda e: e.inspection.queue_stats(),
        "channel_stats, 20": lambda e: e.inspection.channel_stats(None, None, 20),
        "channels, 50": lambda e: e.inspection.channels(ChannelFilter(), 50, None),
        "channels, 50, next page": lambda e: e.inspection.channels(ChannelFilter(), 50, "id:"),
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
        "dead letters, 100": lambda e: e.dead_letters.dead_letters(
            DeadLetterFilter(QUEUE), 100, None
        ),
        "dead letters, counted to 1,000": lambda e: e.dead_letters.count_dead_letters(
            DeadLetterFilter(QUEUE), 1_000
        ),
        "minutes, an hour": lambda e: e.inspection.minutes(MinuteFilter(hour, now)),
        "minutes, an hour, by kind": lambda e: e.inspection.minutes(
            MinuteFilter(hour, now, by="kind")
        ),
        "minutes, 14 days by the hour": lambda e: e.inspection.minutes(
            MinuteFilter(now - 14 * _DAY, now, timedelta(hours=1))
        ),
        "totals": lambda e: e.inspection.totals(),
    }


class Watched:
    """A connection whose thread in the server is watched: milliseconds until the rows were here,
    those that the thread was on a processor (on a busy machine the others say little), and rows
    read."""

    def __init__(self, url: str, server: int) -> None:
        options = connect_options(url)
        self.connection = pymysql.connect(database=database_of(url), **options)
        ((thread,),) = self._ask(
            "select tid from information_schema.processlist where id = connection_id()"
        )
        self._schedstat = Path(f"/proc/{server}/task/{thread}/schedstat")
        self.milliseconds, self.busy, self.rows = 0.0, 0.0, 0

    def run(self, plan: Plan[Any]) -> Any:
        self._ask("flush status")
        self.milliseconds, before = 0.0, self._on_processor()
        answer = drive(plan, self._timed)
        self.busy = self._on_processor() - before
        read = self._ask("show session status like 'Handler_read%'")
        self.rows = sum(int(value) for _, value in read)
        return answer

    def _timed(self, statement: Statement) -> Sequence[Row]:
        begun = time.perf_counter()
        rows = _execute(self.connection, statement)
        self.milliseconds += (time.perf_counter() - begun) * 1_000
        return rows

    def _ask(self, text: str) -> Sequence[Row]:
        return _execute(self.connection, Statement(text))

    def _on_processor(self) -> float:
        return int(self._schedstat.read_text().split()[0]) / 1e6


def fill(url: str, size: Waiting) -> None:
    sizes: dict[str, Any] = size._asdict() | {"each": size.messages // size.channels}
    counts = size._asdict() | {"kinds": 20}
    sizes["numbers"] = {what: _NUMBERS.format(n=n) for what, n in counts.items()}
    sizes["now"] = int(time.time() * 1_000_000)
    sizes["name"] = _NAME.format(n="seq", channels=size.channels)
    sizes["id"] = _ID.format(n="seq", channels=size.channels)
    options = connect_options(url)
    connection = pymysql.connect(database=database_of(url), **options)
    with closing(connection), connection.cursor() as cursor:
        for part in _FILL:
            cursor.execute(part.format(**sizes))
            connection.commit()
    with Queue(url, upkeep_every=None) as queue:
        while queue.stats()[0].dead < size.dead:
            queue.upkeep()


def measure(url: str, server: int) -> Iterator[tuple[str, float, float, int]]:
    """The middle one of some rounds: milliseconds, milliseconds on a processor, rows read."""
    engine, watched = MysqlEngine(), Watched(url, server)
    with closing(watched.connection):
        for name, look in looks(datetime.now(UTC), 777).items():
            rounds = []
            for _ in range(_ROUNDS):
                watched.run(look(engine))
                rounds.append((watched.milliseconds, watched.busy, watched.rows))
            yield name, *sorted(rounds)[_ROUNDS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = QUICK if options.quick else Waiting()
    install_mariadb()
    with EmbeddedMariaDB(settings=SETTINGS) as server:
        url = server.create_database("looks")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
        fill(url, size)
        columns = ("look", "ms", "ms on a processor", "rows read")
        table = Table(f"MariaDB: a look, with {size.messages:,} messages", columns)
        for name, milliseconds, busy, rows in measure(url, server.pid):
            table.add(name, round(milliseconds, 1), round(busy, 1), rows)
        show([table], as_json=options.json)


if __name__ == "__main__":
    main()
