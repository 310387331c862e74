"""Looks read a limited number of rows, whatever waits; what is too much for them upkeep counts."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laneway import NewMessage, Policy, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.sync import _execute
from laneway.drivers.runner import drive
from laneway.engines.mysql import MysqlEngine
from laneway.inspection import ChannelFilter, MessageFilter
from laneway.model import DeadLetterFilter
from laneway.operations import MinuteFilter
from laneway.plan import Plan
from tests.model.mysql import connect

SIZES = (4_000, 20_000)
LETTERS = 400
HOUR = timedelta(hours=1)
_END = datetime(2100, 1, 1, tzinfo=UTC)

LOOKS: dict[str, Callable[[MysqlEngine], Plan[Any]]] = {
    "queue_stats": lambda e: e.inspection.queue_stats(),
    "channel_stats": lambda e: e.inspection.channel_stats(None, None, 50),
    "channel_stats of one": lambda e: e.inspection.channel_stats("default", "channel 5", 1),
    "channels": lambda e: e.inspection.channels(ChannelFilter(), 50, None),
    "channels, walked": lambda e: e.inspection.channels(ChannelFilter(), 50, "id:"),
    "channels that are paused": lambda e: e.inspection.channels(
        ChannelFilter(paused=True), 50, None
    ),
    "channels of a prefix": lambda e: e.inspection.channels(
        ChannelFilter(prefix="nothing"), 50, "id:"
    ),
    "messages": lambda e: e.inspection.messages(MessageFilter(), 50, 0),
    "messages of a kind": lambda e: e.inspection.messages(MessageFilter(kind="nothing"), 50, 0),
    "messages later": lambda e: e.inspection.messages(MessageFilter(state="scheduled"), 50, 0),
    "messages of a channel": lambda e: e.inspection.messages(
        MessageFilter("default", "channel 5"), 50, 0
    ),
    "messages leased": lambda e: e.inspection.messages(MessageFilter(state="leased"), 50, 0),
    "messages dead": lambda e: e.inspection.messages(
        MessageFilter(kind="nothing", state="dead"), 50, 0
    ),
    "dead letters": lambda e: e.dead_letters.dead_letters(
        DeadLetterFilter(queue="default"), 50, None
    ),
    "count of dead letters": lambda e: e.dead_letters.count_dead_letters(
        DeadLetterFilter(queue="default"), 500
    ),
    "minutes": lambda e: e.inspection.minutes(MinuteFilter(_END - HOUR, _END)),
}


def stocked(url: str, channels: int) -> None:
    """So many channels with two messages each, half of them with a limit of one. Of those that were
    claimed from the counts are in the channel, of the others in unread wakes."""
    names = [f"channel {number}" for number in range(channels)]
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        for start in range(0, channels, 5_000):
            part = names[start : start + 5_000]
            queue.set_policies(dict.fromkeys(part[::2], Policy(concurrency=1)))
            queue.publish_many([NewMessage(b"", name, kind="some") for name in part * 2])
        claimed = queue.claim(SIZES[0])
        queue.publish_many([NewMessage(b"", name, delay=HOUR) for name in names[:1_200]])
        queue.channel(names[4]).pause()
        queue.fail(claimed[:LETTERS])
        queue.complete(claimed[LETTERS : LETTERS + 1_000])
        while queue.stats()[0].as_of is None or queue.stats()[0].dead < LETTERS:
            queue.upkeep()
        for _ in range(channels // 1_000):
            queue.upkeep()


pytestmark = pytest.mark.repeats("PostgreSQL and SQLite are in make test; the rows take 24 s")


@pytest.fixture(scope="module")
def databases(mariadb: EmbeddedMariaDB) -> Iterator[dict[int, str]]:
    urls = {size: mariadb.create_database(f"looks {size}") for size in SIZES}
    for size, url in urls.items():
        stocked(url, size)
    yield urls


def rows_read(url: str, plan: Plan[Any]) -> tuple[Any, int]:
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("flush status")
        answer = drive(plan, lambda statement: _execute(connection, statement))
        cursor.execute("show session status like 'Handler_read%'")
        return answer, sum(int(value) for _, value in cursor.fetchall())


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_reads_the_same_rows_whatever_waits(databases: dict[int, str], name: str) -> None:
    few, many = (rows_read(databases[size], LOOKS[name](MysqlEngine()))[1] for size in SIZES)
    assert many <= 1.2 * few + 100, f"{few} rows of {SIZES[0]} channels, {many} of {SIZES[1]}"
    assert many < 60_000


def test_a_large_queue_is_as_upkeep_counted_it(databases: dict[int, str]) -> None:
    for size, url in databases.items():
        with Queue(url, upkeep_every=None) as queue:
            (n,) = queue.stats()
        assert not n.exact and n.as_of is not None and n.channels > 400
        assert n.dead == LETTERS and n.oldest_due is not None
        assert n.waiting + n.scheduled + n.leased == 2 * size + 1_200 - 1_000 - LETTERS
        assert n.leased == 1_000 and n.scheduled >= 400


def test_a_small_queue_beside_a_large_one_is_exact(mariadb: EmbeddedMariaDB) -> None:
    url = mariadb.create_database("looks at two")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        queue.publish_many([NewMessage(b"", f"channel {n}") for n in range(1_500)])
        queue.publish_many([NewMessage(b"", "a", queue="small") for _ in range(7)])
        for _ in range(3):
            queue.upkeep()
        large, small = queue.stats()
    assert (large.queue, large.waiting, large.exact) == ("default", 1_500, False)
    assert (small.queue, small.waiting, small.channels, small.exact) == ("small", 7, 1, True)


def test_a_walk_over_channels_meets_all_that_wait_or_have_a_policy(
    databases: dict[int, str],
) -> None:
    url = databases[SIZES[0]]
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "select name from laneway_channel where n > 0 or concurrency is not null or paused"
        )
        wanted = {name.decode() for (name,) in cursor.fetchall()}
    seen, after, pages = set(), None, 0
    with Queue(url, upkeep_every=None) as queue:
        while pages < 100:
            page = queue.channels(limit=300, after=after)
            seen |= {info.channel for info in page}
            after, pages = page.next, pages + 1
            if after is None:
                break
        found = queue.channels(queue="default", channel="channel 4")
        paused = queue.channels(paused=True, after="id:", limit=5)
    assert wanted <= seen and len(wanted) >= 2_000
    assert [info.waits_for for info in found] == ["paused"]
    assert [info.channel for info in paused] in (["channel 4"], [])


def test_messages_that_nothing_matches_are_looked_for_in_parts(databases: dict[int, str]) -> None:
    with Queue(databases[SIZES[0]], upkeep_every=None) as queue:
        after, looked = 0, 0
        for _ in range(10):
            page = queue.messages(kind="nothing", after=after)
            assert page == []
            looked += page.looked
            if page.next is None:
                break
            after = page.next
        assert page.next is None and looked > 5_000


def test_dead_letters_of_flows_are_found_by_an_index(databases: dict[int, str]) -> None:
    url = databases[SIZES[0]]
    with Queue(url, name="flows", upkeep_every=None) as queue:
        with queue.flow("one with many nodes") as flow:
            for number in range(200):
                flow.add(number)
        assert flow.id is not None
        queue.fail(failed := queue.claim(2))
    found, read = rows_read(url, MysqlEngine().flows.flows_with_dead(5))
    assert [one.id for one in found] == [flow.id] and read < 30
    dead, read = rows_read(url, MysqlEngine().flows.dead_nodes(flow.id, 10))
    assert [one.id for one in dead] == [message.id for message in failed] and read < 10
