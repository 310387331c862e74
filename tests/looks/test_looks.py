"""Looks on PostgreSQL read the same number of pages whatever waits, and say what they do not
know."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest
from psycopg import RawCursor

from benchmarks.looks import QUEUE, Explained, Waiting, fill, measure
from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.drivers.runner import drive
from laneway.engines.postgresql import dead_letters, diagnose
from laneway.engines.postgresql.engine import PostgresqlEngine
from laneway.engines.postgresql.schema import install_sql
from laneway.inspection import Finding
from laneway.model import DeadLetterFilter
from laneway.plan import Row, Statement

# Each is above what a look reads.
SMALL = Waiting(messages=12_000, channels=3_000, dead=12_000, leases=2_500, days=1)
LARGE = Waiting(messages=60_000, channels=30_000, dead=30_000, leases=10_000, days=1)
MORE = 2  # an index that grows by a level costs a page more each time


@pytest.fixture(scope="module")
def urls(server: EmbeddedPostgres) -> Iterator[tuple[str, str]]:
    made = []
    for name, size in (("looks small", SMALL), ("looks large", LARGE)):
        made.append(server.create_database(name))
        with psycopg.connect(made[-1], autocommit=True) as connection:
            connection.execute(install_sql().encode())
            fill(connection, size)
    yield made[0], made[1]


def test_a_look_reads_the_same_whatever_waits(urls: tuple[str, str]) -> None:
    small, large = ({name: pages for name, _, _, pages in measure(url)} for url in urls)
    grown = {
        name: (small[name], pages)
        for name, pages in large.items()
        if pages > small[name] * MORE + 500
    }
    assert not grown
    assert max(large.values()) < 10_000


NEW_LETTERS = """
insert into laneway.dead
select (jsonb_populate_record(
    null::laneway.dead,
    to_jsonb(d) || jsonb_build_object('id', -d.id, 'queue', 'later', 'died_at', now()))).*
from (select * from laneway.dead order by id limit 20) d"""


def test_a_few_new_letters_of_one_queue_are_not_looked_for_among_all(
    urls: tuple[str, str],
) -> None:
    """Before the server has counted them: then the planner takes the queue for a common one."""
    with psycopg.connect(urls[1]) as connection:
        connection.execute(NEW_LETTERS)
        for _ in range(8):  # as often as it takes to settle for a plan
            ((plan,),) = connection.execute(
                "explain (analyze, buffers, format json) "
                "select * from laneway.look_queue_stats_v1()"
            ).fetchall()
        read = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
        found = connection.execute(
            "select dead from laneway.look_queue_stats_v1() where queue = 'later'"
        ).fetchall()
        connection.rollback()
    assert found == [(20,)]
    assert read < 1_200, read


def test_a_look_at_dead_letters_ends_where_it_is_told_to(
    urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where the index ends. Nor are those of one queue looked for among all."""
    monkeypatch.setattr(dead_letters, "LOOK", 100)
    engine, explained = PostgresqlEngine(), Explained(urls[1])
    with explained.connection as connection:
        connection.execute(NEW_LETTERS.replace("-d.id", "d.id + 1000000"))
        for by in (
            DeadLetterFilter(QUEUE, reason="none"),
            DeadLetterFilter(reason="none"),
            DeadLetterFilter("later", kind="none"),
        ):
            page, pages = None, 0
            for _ in range(5):
                page = explained.run(engine.dead_letters.dead_letters(by, 10, page and page.next))
                pages += explained.pages
                if page.next is None:
                    break
            assert not page
            assert pages < 150, (by, pages)
            explained.run(engine.dead_letters.count_dead_letters(by, 10))
            assert explained.pages < 30, (by, explained.pages)
        connection.execute("delete from laneway.dead where queue = 'later'")


def test_what_a_node_comes_after_is_not_looked_for_among_all_nodes(
    server: EmbeddedPostgres,
) -> None:
    """Before the server has counted them."""
    url = server.create_database("looks links")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter table laneway.flow_node set (autovacuum_enabled = off)")
            connection.execute("alter table laneway.flow_edge set (autovacuum_enabled = off)")
        with queue.flow("long") as flow:
            last = flow.add(0)
            for n in range(3_000):
                last = flow.add(n, after=[last])
    assert last.id is not None
    explained = Explained(url)
    with explained.connection:
        place = explained.run(PostgresqlEngine().flows.flow_place(last.id))
    assert place is not None
    assert explained.pages < 40, explained.pages


def test_what_is_wrong_is_looked_for_among_few_leases(urls: tuple[str, str]) -> None:
    """All of them have run out."""
    with psycopg.connect(urls[1]) as connection:
        connection.execute("update laneway.lease set until = until - interval '3 hours'")
        query = "select * from laneway.look_expired_v1(interval '30 seconds')"
        ((plan,),) = connection.execute(f"explain (analyze, buffers, format json) {query}")
        ((expired, since),) = connection.execute(query)
        ((first,),) = connection.execute("select min(until) from laneway.lease")
        connection.rollback()
    read = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
    assert (expired, since) == (1000, first)
    assert read < 1_100, read  # each may be read from the table once


def test_what_is_not_known_exactly_is_said(urls: tuple[str, str]) -> None:
    with Queue(urls[1], upkeep_every=None) as queue:
        (stats,) = queue.stats()
        assert not stats.exact and stats.as_of is not None
        waiting = LARGE.messages - LARGE.leases
        assert waiting * 0.8 < stats.waiting < LARGE.messages * 1.1, stats
        assert stats.dead == pytest.approx(LARGE.dead, rel=0.1), stats
        assert stats.leased == LARGE.leases
        assert stats.channels < LARGE.channels
        (one,) = queue.channels(queue=QUEUE, channel="tenant-0000777")
        assert one.stats.exact and one.stats.waiting + one.stats.leased == 2
        assert queue.messages(kind="none").next is not None
        assert not queue.messages(kind="none")


def test_whoever_goes_on_sees_every_channel(urls: tuple[str, str]) -> None:
    with Queue(urls[0], upkeep_every=None) as queue:
        seen, after = set(), None
        for _ in range(20):
            page = queue.channels(limit=500, after=after)
            seen |= {info.channel for info in page}
            after = page.next
            if after is None:
                break
        assert len(seen) == SMALL.channels
        paused = queue.channels(paused=True)
        assert {info.channel for info in paused} == {f"tenant-{n:07}" for n in (1, 1001, 2001)}
        assert all(info.waits_for == "paused" for info in paused)
        named = queue.channels(queue=QUEUE, prefix="tenant-00012")
        found = {info.channel for info in named}
        while named.next is not None:
            named = queue.channels(queue=QUEUE, prefix="tenant-00012", after=named.next)
            found |= {info.channel for info in named}
        assert found == {f"tenant-{n:07}" for n in range(1200, 1300)}


def test_a_message_of_a_kind_is_found_by_going_on(urls: tuple[str, str]) -> None:
    with Queue(urls[1], upkeep_every=None) as queue:
        queue.publish("rare", kind="rare", channel="tenant-0000001", queue=QUEUE)
        page, looks = queue.messages(kind="rare"), 1
        while not page and page.next is not None:
            page, looks = queue.messages(kind="rare", after=page.next), looks + 1
        assert [info.kind for info in page] == ["rare"]
        assert looks == 7


def test_settings_that_were_fine_are_not_asked_for_again_within_a_minute(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were not, every time: whoever mends one sees it at once."""
    # This server does without fsync, which is not fine.
    monkeypatch.setattr(diagnose, "_disk", lambda name, *_: Finding(name, "ok", "on"))
    url = server.create_database("looks settings")
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
    engine = PostgresqlEngine()

    def asked() -> tuple[bool, str]:
        """Whether the server was asked, and what it says of synchronous_commit."""
        sent: list[str] = []
        with psycopg.connect(url, autocommit=True) as connection:

            def execute(statement: Statement) -> Sequence[Row]:
                sent.append(statement.sql)
                with RawCursor(connection) as cursor:
                    cursor.execute(statement.sql.encode(), statement.params)
                    return cursor.fetchall()

            found = drive(engine.maintenance.diagnose(60.0), execute)
        levels = {finding.check: finding.level for finding in found}
        return any("synchronous_standby_names" in sql for sql in sent), levels["synchronous_commit"]

    with psycopg.connect(url, autocommit=True) as connection:
        change = 'alter database "looks settings" set synchronous_commit = '
        connection.execute(f"{change} off".encode())
        assert [asked(), asked()] == [(True, "warn"), (True, "warn")]
        connection.execute(f"{change} on".encode())
        assert [asked(), asked()] == [(True, "ok"), (False, "ok")]
