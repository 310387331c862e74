"""What operators' looks cost on SQLite, whatever waits. `python -m benchmarks.sqlite_looks`.

A million messages in 100,000 channels, half of them limited, beside a tenth of it. Counted in steps
of SQLite's virtual machine, which do not depend on the machine; the milliseconds are CPU time.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from laneway import NewMessage, Policy, Queue
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.sqlite import SqliteEngine
from laneway.inspection import ChannelFilter, MessageFilter
from laneway.operations import MinuteFilter
from laneway.plan import Plan

from .bench import PAYLOAD, say
from .report import Table, show

_CHUNK = 10_000
_TIMES = 7
_HOUR = timedelta(hours=1)
_LIMIT_MS = 50

Look = Callable[[SqliteEngine], Plan[Any]]


def _minutes(engine: SqliteEngine, length: timedelta, step: timedelta) -> Plan[Any]:
    now = datetime.now(UTC)
    return engine.inspection.minutes(MinuteFilter(now - length, now + timedelta(minutes=1), step))


LOOKS: dict[str, Look] = {
    "stats()": lambda engine: engine.inspection.queue_stats(),
    "channel_stats(limit=20)": lambda engine: engine.inspection.channel_stats(None, None, 20),
    "channel(…).stats()": lambda engine: engine.inspection.channel_stats(
        "default", "channel 77", 1
    ),
    "channels(limit=100)": lambda engine: engine.inspection.channels(ChannelFilter(), 100, None),
    "channels(…), the next page": lambda engine: engine.inspection.channels(
        ChannelFilter(), 100, '["default", "channel 5"]'
    ),
    'channels(prefix="channel 12")': lambda engine: engine.inspection.channels(
        ChannelFilter(prefix="channel 12"), 100, None
    ),
    "channels(limited=True)": lambda engine: engine.inspection.channels(
        ChannelFilter(limited=True), 100, None
    ),
    "channels(paused=True)": lambda engine: engine.inspection.channels(
        ChannelFilter(paused=True), 100, None
    ),
    "messages(limit=100)": lambda engine: engine.inspection.messages(MessageFilter(), 100, 0),
    "messages(kind=…) that does not occur": lambda engine: engine.inspection.messages(
        MessageFilter(kind="none"), 100, 0
    ),
    "messages(channel=…)": lambda engine: engine.inspection.messages(
        MessageFilter(channel="channel 77"), 100, 0
    ),
    'messages(state="leased")': lambda engine: engine.inspection.messages(
        MessageFilter(state="leased"), 100, 0
    ),
    'messages(state="dead")': lambda engine: engine.inspection.messages(
        MessageFilter(state="dead"), 100, 0
    ),
    "minutes(), an hour": lambda engine: _minutes(engine, _HOUR, timedelta(minutes=1)),
    "minutes(), 14 days by hour": lambda engine: _minutes(engine, timedelta(days=14), _HOUR),
}


def fill(url: str, messages: int, channels: int) -> None:
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        names = [f"channel {number}" for number in range(channels)]
        for start in range(0, channels, _CHUNK):
            part = names[start : start + _CHUNK]
            queue.set_policies(dict.fromkeys(part[::2], Policy(concurrency=2, rate=10)))
        for start in range(0, messages, _CHUNK):
            numbers = range(start, min(start + _CHUNK, messages))
            queue.publish_many(
                [
                    NewMessage(
                        PAYLOAD,
                        names[n % channels],
                        kind="mail",
                        delay=_HOUR if n % 4 == 0 else None,
                    )
                    for n in numbers
                ]
            )
        queue.fail(queue.claim(min(1000, channels // 10)), "no")
        queue.claim(min(1000, channels // 10))
        began, calls = time.monotonic(), 0
        while calls < 100 and not queue.stats()[0].as_of and channels > 1000:
            queue.upkeep()
            calls += 1
        say(f"sqlite: counted {channels:,} channels in {time.monotonic() - began:.1f} s")
        position = "select message_id from laneway_fold"
        with closing(connect(read_url(url))) as eyes:
            while eyes.execute(position).fetchone()[0] < messages:
                queue.upkeep()


def fill_dead(url: str, dead: int, channels: int) -> None:
    """So many dead letters; the oldest are rare ones."""
    now = time.time_ns() // 1000
    with closing(connect(read_url(url))) as connection, connection:
        connection.execute("begin immediate")
        connection.execute(
            """with recursive n(i) as (select 1 union all select i + 1 from n where i < :dead)
            insert into laneway_dead (id, died_at, published_at, first_published_at, attempt,
                max_attempts, priority, queue, channel, kind, content_type, reason, error_type,
                error, payload)
            select 100000000 + i, :now - (:dead - i) * 1000, :now, :now, 20, 20, 0, 'default',
                'channel ' || (i % :channels), 'kind-' || (i % 20), 'application/json',
                iif(i < 5, 'rare', 'max_attempts'), iif(i < 5, 'Rare', 'ValueError'), 'no', '1'
            from n""",
            {"dead": dead, "now": now, "channels": channels},
        )
        connection.execute(
            """insert into laneway_dead_count (queue, channel, n)
            select queue, channel, count(*) from laneway_dead where id > 100000000
            group by queue, channel on conflict (queue, channel) do update set n = n + excluded.n"""
        )
        connection.execute("commit")


class Meter:
    """A connection whose steps are counted."""

    def __init__(self, url: str) -> None:
        self.connection = connect(read_url(url))
        self.engine = SqliteEngine()

    def run(self, look: Look) -> Any:
        return drive(look(self.engine), lambda statement: execute(self.connection, statement))

    def milliseconds(self, look: Look) -> float:
        times = []
        for _ in range(_TIMES):
            began = time.process_time()
            self.run(look)
            times.append((time.process_time() - began) * 1000)
        return median(times)

    def steps(self, look: Look) -> int:
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        self.connection.set_progress_handler(step, 10)
        self.run(look)
        self.connection.set_progress_handler(None, 0)
        return steps * 10


def measure(folder: Path, messages: int, channels: int) -> Table:
    """Against a tenth of it."""
    few, many = (f"sqlite:///{folder}/{name}.db?synchronous=normal" for name in ("tenth", "all"))
    began = time.monotonic()
    fill(few, messages // 10, channels // 10)
    fill(many, messages, channels)
    say(f"sqlite: {messages:,} messages were published in {time.monotonic() - began:.0f} s")
    table = Table(
        f"SQLite: looks with {messages:,} messages in {channels:,} channels",
        ["look", "ms of CPU", "below 50 ms", "steps", "steps at a tenth"],
    )
    tenth, all = Meter(few), Meter(many)
    with closing(tenth.connection), closing(all.connection):
        for name, look in LOOKS.items():
            length = all.milliseconds(look)
            fine = "ok" if length < _LIMIT_MS else "no"
            table.add(name, length, fine, all.steps(look), tenth.steps(look))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    messages, channels = (100_000, 10_000) if options.quick else (1_000_000, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        show([measure(Path(folder), messages, channels)], as_json=options.json)


if __name__ == "__main__":
    main()
