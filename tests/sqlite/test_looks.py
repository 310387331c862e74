"""Looks read a limited number of rows, whatever waits; what is too much for them upkeep counts."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from laneway import NewMessage, Policy, Queue
from laneway.drivers.placeholders import numbered
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.sqlite import SqliteEngine
from laneway.engines.sqlite import dead_letters as letters_module
from laneway.engines.sqlite.base import statement
from laneway.engines.sqlite.operate import looks
from laneway.inspection import ChannelFilter, DeadLetterPosition, MessageFilter
from laneway.model import DeadLetterFilter
from laneway.operations import MinuteFilter
from laneway.plan import Plan

HOUR = timedelta(hours=1)
NOW = datetime(2030, 1, 1, 12, 0, 30, tzinfo=UTC)


@dataclass
class Steps:
    """A connection that counts the steps of SQLite's virtual machine."""

    connection: sqlite3.Connection
    engine: SqliteEngine

    def of(self, plan: Plan[Any]) -> tuple[Any, int]:
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        self.connection.set_progress_handler(step, 100)
        answer = drive(plan, lambda statement: execute(self.connection, statement))
        self.connection.set_progress_handler(None, 0)
        return answer, steps * 100


def stocked(path: Path, channels: int) -> str:
    """A file in which so many channels have five messages each: one is due, four are scheduled; all
    but every tenth have a limit."""
    url = f"sqlite:///{path}?synchronous=normal"
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        names = [f"channel {number:06}" for number in range(channels)]
        for start in range(0, channels, 5000):
            part = names[start : start + 5000]
            limited = [name for name in part if not name.endswith("0")]
            queue.set_policies(dict.fromkeys(limited, Policy(concurrency=1)))
            queue.publish_many([NewMessage(b"", name, kind="some") for name in part])
            queue.publish_many([NewMessage(b"", name, delay=HOUR) for name in part * 4])
        queue.claim(50)
        while not queue.stats()[0].as_of:
            queue.upkeep()
    return url


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Steps]]:
    """Several times what a look reads, and three times that."""
    folder, opened = tmp_path_factory.mktemp("looks"), {}
    for size in (2_500, 7_500):
        url = stocked(folder / f"{size}.db", size)
        opened[size] = Steps(connect(read_url(url)), SqliteEngine())
    yield opened.__getitem__
    for one in opened.values():
        one.connection.close()


LOOKS: dict[str, Callable[[SqliteEngine], Plan[Any]]] = {
    "queue stats": lambda engine: engine.inspection.queue_stats(),
    "channel stats": lambda engine: engine.inspection.channel_stats(None, None, 100),
    "one channel": lambda engine: engine.inspection.channel_stats("default", "channel 000100", 1),
    "channels": lambda engine: engine.inspection.channels(ChannelFilter(), 100, None),
    "channels by name": lambda engine: engine.inspection.channels(
        ChannelFilter("default"), 100, '["default", "channel 000500"]'
    ),
    "channels by prefix": lambda engine: engine.inspection.channels(
        ChannelFilter(prefix="channel 0001"), 100, None
    ),
    "limited channels": lambda engine: engine.inspection.channels(
        ChannelFilter(limited=True), 100, None
    ),
    "paused channels": lambda engine: engine.inspection.channels(
        ChannelFilter(paused=True), 100, None
    ),
    "messages": lambda engine: engine.inspection.messages(MessageFilter(), 100, 0),
    "messages of a kind that does not occur": lambda engine: engine.inspection.messages(
        MessageFilter(kind="none"), 100, 0
    ),
    "messages of a channel": lambda engine: engine.inspection.messages(
        MessageFilter(channel="channel 000100"), 100, 0
    ),
    "leased messages": lambda engine: engine.inspection.messages(
        MessageFilter(state="leased"), 100, 0
    ),
    "minutes": lambda engine: engine.inspection.minutes(MinuteFilter(NOW - HOUR, NOW)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_costs_the_same_whatever_waits(steps: Callable[[int], Steps], look: str) -> None:
    few, many = (steps(size).of(LOOKS[look](steps(size).engine))[1] for size in (2_500, 7_500))
    assert many <= few * 1.3 + 1000, f"{few} steps of 2,500 channels, {many} of 7,500"


DEAD_LETTERS = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000)
insert into laneway_dead (id, died_at, published_at, first_published_at, attempt, max_attempts,
    priority, queue, channel, kind, content_type, reason, payload)
select i, i * 1000, 0, 0, 1, 1, 0, 'default', 'one', '', 'text/plain', 'often', '' from n"""


@pytest.mark.parametrize("queue", [None, "default"])
def test_a_look_for_rare_dead_letters_ends_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: str | None
) -> None:
    """Neither the newer letters, which a later page passes by, nor the older ones are read."""
    monkeypatch.setattr(letters_module, "LOOK", 100)
    url = f"sqlite:///{tmp_path}/dead.db"
    with Queue(url, upkeep_every=None) as client:
        client.install()
    with closing(connect(read_url(url))) as connection:
        connection.execute(DEAD_LETTERS)
        steps, rare = Steps(connection, SqliteEngine()), DeadLetterFilter(queue, reason="rare")
        middle = DeadLetterPosition(datetime.fromtimestamp(3, UTC), 3_000)
        for after in (None, middle):
            page, cost = steps.of(steps.engine.dead_letters.dead_letters(rare, 10, after))
            assert page == [] and page.next is not None
            assert cost < 10_000, f"{cost} steps, which is more than 100 letters need"


def test_what_is_too_much_for_a_look_is_as_upkeep_counted_it(
    steps: Callable[[int], Steps],
) -> None:
    few = steps(2_500)
    (n,), _ = few.of(few.engine.inspection.queue_stats())
    assert (n.exact, n.as_of is not None) == (False, True)
    assert (n.waiting, n.scheduled, n.leased, n.dead, n.channels) == (2450, 10000, 50, 0, 2500)
    fullest, _ = few.of(few.engine.inspection.channel_stats(None, None, 100))
    assert len(fullest) == 100 and {n.waiting for n in fullest} == {1}
    one, _ = few.of(few.engine.inspection.channel_stats("default", "channel 002499", 1))
    assert (one[0].waiting, one[0].scheduled, one[0].exact) == (1, 4, True)


def test_pages_of_channels_reach_every_one(steps: Callable[[int], Steps]) -> None:
    few = steps(2_500)
    seen, position = [], None
    while True:
        page, _ = few.of(few.engine.inspection.channels(ChannelFilter("default"), 700, position))
        seen += [info.channel for info in page]
        assert len(page) <= 700 and page.looked <= looks.CHANNELS
        position = page.next
        if position is None:
            break
    assert len(set(seen)) == 2_500
    page, _ = few.of(
        few.engine.inspection.channels(ChannelFilter(prefix="channel 0012"), 1000, None)
    )
    assert [info.channel for info in page] == [f"channel {n:06}" for n in range(1200, 1300)]
    page, _ = few.of(few.engine.inspection.channels(ChannelFilter(limited=True), 1000, None))
    assert len(page) == 1000 and page.next is not None


def test_a_search_says_how_far_it_looked(steps: Callable[[int], Steps]) -> None:
    many = steps(7_500)
    found, after, pages = [], 0, 0
    while after is not None:
        page, _ = many.of(many.engine.inspection.messages(MessageFilter(kind="some"), 5000, after))
        found += [info.id for info in page]
        assert page.looked <= 10_000
        after, pages = page.next, pages + 1
    assert len(set(found)) == len(found) == 7_500
    assert pages >= 4
    nothing, _ = many.of(many.engine.inspection.messages(MessageFilter(kind="none"), 100, 0))
    assert nothing == [] and nothing.next is not None


def test_half_due_and_half_scheduled_is_counted_by_upkeep(
    url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither side is counted by a look if both are more than it counts."""
    monkeypatch.setattr(looks, "COUNTED", 100)
    monkeypatch.setattr("laneway.engines.sqlite.operate.counts.COUNTED", 100)
    monkeypatch.setattr("laneway.engines.sqlite.operate.counts._MOST", 10)
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.publish_many([NewMessage(b"", "a") for _ in range(150)])
        queue.publish_many([NewMessage(b"", "a", delay=HOUR) for _ in range(250)])
        before = queue.channel("a").stats()
        assert (before.waiting + before.scheduled, before.exact) == (400, False)
        queue.upkeep()
        after = queue.channel("a").stats()
        assert (after.waiting, after.scheduled, after.exact) == (150, 250, False)
        queue.publish_many([NewMessage(b"", "b", delay=HOUR) for _ in range(90)])
        assert queue.channel("b").stats().exact


def test_a_policy_s_lists_cost_the_plain_path_nothing(url: str, path: Path) -> None:
    """No index of them holds a column that publish, claim or complete change."""
    with Queue(url) as queue, closing(sqlite3.connect(path)) as eyes:
        queue.install()
        for verb in ("update_channel_counts", "update_served_channel"):
            sql = numbered(statement(verb, "laneway"))
            values = [1] * 11 if verb == "update_served_channel" else [1] * 7
            rows = eyes.execute(f"explain {sql}", values).fetchall()
            roots = {
                row[0]: row[1]
                for row in eyes.execute("select rootpage, name from sqlite_master").fetchall()
            }
            opened = {roots.get(row[3]) for row in rows if row[1] == "OpenWrite"}
            assert not {name for name in opened if name and name.endswith(("limited", "paused"))}
