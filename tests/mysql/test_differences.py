"""Where databases differ: names, time zones, sizes, nulls, installs, isolation levels."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laneway import Policy, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.engines.mysql import MysqlEngine, install_sql
from laneway.engines.mysql.base import pair_id
from laneway.engines.mysql.diagnose import MysqlServerSettings, _server_findings
from laneway.engines.mysql.schema import _statements
from laneway.errors import InvalidName, PayloadTooLarge, SchemaMissing
from tests.model.mysql import connect

ALIKE = ["a", "A", "ä", "a ", "a  ", " a", "á", "ß", "ss", "SS", "a\t", "💧", "💦"]


def test_names_that_collations_treat_as_equal_are_different(queue: Queue) -> None:
    for name in ALIKE:
        queue.publish(name, channel=name, key=name, key_scope="queue", kind=name)
    numbers = {n.channel: n.waiting for n in queue.channel_stats()}
    assert numbers == dict.fromkeys(ALIKE, 1)
    for name in ALIKE:
        assert queue.publish("again", channel=name, key=name, key_scope="queue").existing
        queue.channel(name).limit(weight=2)
    claimed = list(queue.claim(100))
    assert sorted((m.channel, m.text(), m.kind) for m in claimed) == sorted(
        (name, name, name) for name in ALIKE
    )
    queue.fail(claimed, "a ")
    assert [d.channel for d in queue.dead_letters.list(channel="a ")] == ["a "]
    assert queue.dead_letters.list(reason="a") == []


def test_queues_that_look_alike_are_different(queue: Queue) -> None:
    for name in ALIKE:
        queue.publish(name, queue=name)
    assert {n.queue: n.waiting for n in queue.stats()} == dict.fromkeys(ALIKE, 1)
    for name in ALIKE:
        assert [m.text() for m in queue.claim(10, queues=[name])] == [name]


def test_the_longest_names(queue: Queue) -> None:
    longest = "💧" * 63 + "abc"
    assert len(longest.encode()) == 255
    queue.publish("x", queue=longest, channel=longest, key=longest, kind=longest)
    queue.channel(longest, queue=longest).limit(concurrency=1)
    (message,) = queue.claim(10, queues=[longest])
    assert message.channel == message.kind == message.key == message.queue == longest
    message.complete()
    assert queue.publish("y", queue=longest, channel=longest, key=longest).status == "published"


@pytest.mark.parametrize("prefix", ["p" * 40, "with space", "semi;colon", "back`tick", "ü"])
def test_any_prefix(prefix: str, url: str) -> None:
    with Queue(url, schema=prefix, upkeep_every=None) as queue:
        queue.install()
        queue.publish("x")
        queue.complete(queue.claim())
        queue.upkeep()
        queue.uninstall()
        with pytest.raises(SchemaMissing):
            queue.publish("y")


@pytest.mark.parametrize("prefix", ["p" * 41, "", "💧", "a\0b"])
def test_invalid_prefixes(prefix: str, url: str) -> None:
    with pytest.raises(InvalidName):
        Queue(url, schema=prefix)


@pytest.mark.parametrize("zone", ["+05:30", "-12:00", "SYSTEM"])
def test_the_time_zone_of_the_session_does_not_matter(zone: str, queue: Queue, url: str) -> None:
    mine = connect(url)
    with mine.cursor() as cursor:
        cursor.execute("set session time_zone = %s", [zone])
    before = datetime.now(UTC) - timedelta(seconds=5)
    when = datetime(2027, 3, 28, 1, 30, 0, 123457, tzinfo=UTC)
    queue.publish("now", connection=mine)
    later = queue.publish("later", at=when, connection=mine)
    mine.commit()
    (message,) = queue.claim(10)
    assert message.text() == "now"
    assert before < message.published_at < before + timedelta(minutes=1)
    info = queue.message(later.id or 0)
    assert info is not None and info.due == when
    with mine.cursor() as cursor:
        cursor.execute("select due from laneway_message_v1 where state = 'scheduled'")
        assert cursor.fetchall() == ((when.replace(tzinfo=None),),)
    mine.close()


def test_a_connection_of_another_character_set(queue: Queue, url: str) -> None:
    mine = connect(url, charset="latin1")
    queue.publish({"a": "naïve ☃"}, channel="💧", key="ü", headers={"h": "☃"}, connection=mine)
    mine.commit()
    (message,) = queue.claim(10)
    assert (message.json(), message.channel, message.key) == ({"a": "naïve ☃"}, "💧", "ü")
    assert message.headers == {"h": "☃"}
    message.fail("nö ☃", error="☃", connection=mine)
    mine.commit()
    mine.close()
    (letter,) = queue.dead_letters.list()
    assert (letter.reason, letter.error) == ("nö ☃", "☃")


@pytest.fixture
def small(mariadb: EmbeddedMariaDB) -> Iterator[EmbeddedMariaDB]:
    with EmbeddedMariaDB(settings={"max_allowed_packet": "1M"}) as server:
        yield server


def test_a_payload_that_is_too_large_for_the_server(small: EmbeddedMariaDB) -> None:
    with Queue(small.create_database("small"), upkeep_every=None) as queue:
        queue.install()
        queue.publish(b"\0" * 500_000)
        with pytest.raises(PayloadTooLarge, match="max_allowed_packet"):
            queue.publish(b"\0" * 600_000)  # a byte takes two in the statement
        queue.publish_many([b"'" * 300_000] * 12)
        found = list(queue.claim(100))
        assert [len(m.payload) for m in found] == [500_000, *[300_000] * 12]


@pytest.mark.repeats("conformance publishes large batches")
def test_large_batches_and_large_payloads(url: str) -> None:
    queue = Queue(url, upkeep_every=None, max_payload=10_000_000)
    queue.install()
    queue.publish_many([b""] * 12_345, channel="many")
    queue.publish(bytes(range(256)) * 20_000, channel="large")
    sizes = [0, 0]
    while claim := queue.claim(5_000):
        for message in claim:
            sizes[message.channel == "large"] += 1
            if message.channel == "large":
                assert message.payload == bytes(range(256)) * 20_000
        assert not any(answer.lost for answer in queue.complete(claim))
    assert sizes == [12_345, 1]
    queue.close()


def test_nulls_everywhere(queue: Queue) -> None:
    queue.set_policies({"a": Policy(), "b": Policy(rate=1000, burst=1), "c": Policy(concurrency=1)})
    for channel in "abc":
        queue.publish(None, channel=channel)
    for message in queue.claim(10):
        assert (message.key, message.expires_at, message.state, message.headers) == (
            None,
            None,
            None,
            {},
        )
        message.defer(state=None)
    assert len(queue.claim(10)) == 3
    assert queue.channel("a").policy() == Policy()


def test_concurrent_installs_after_an_interrupted_one(url: str) -> None:
    observer = connect(url, autocommit=True)
    with observer.cursor() as cursor:
        for text in _statements(install_sql())[:7]:  # interrupted here
            cursor.execute(text)
    failed: list[BaseException] = []

    def install() -> None:
        try:
            with Queue(url) as queue:
                queue.install()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=install) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with Queue(url) as queue:
        queue.publish("x")
        assert len(queue.claim()) == 1
    observer.close()


@pytest.mark.parametrize("verb", ["upgrade", "uninstall"])
def test_a_failed_migration_releases_its_lock(url: str, verb: str) -> None:
    """The lock belongs to the session, which returns to the client's pool."""
    with Queue(url) as queue, closing(connect(url)) as observer, observer.cursor() as cursor:
        with pytest.raises(SchemaMissing):
            getattr(queue, verb)()
        cursor.execute("select is_free_lock(%s)", [MysqlEngine().schema._lock_name])
        assert cursor.fetchall() == ((1,),)


@pytest.mark.parametrize("level", ["read uncommitted", "repeatable read", "serializable"])
def test_the_callers_isolation(level: str, queue: Queue, url: str) -> None:
    """A snapshot that is older than the claim hides neither the lease nor the key."""
    queue.publish("x", channel="a")
    mine = connect(url)
    with mine.cursor() as cursor:
        cursor.execute(f"set session transaction isolation level {level}")
        cursor.execute("select count(*) from laneway_setting")
    (message,) = queue.claim()
    first = queue.publish("keyed", key="k", channel="b")
    assert queue.publish("again", key="k", channel="b", connection=mine).id == first.id
    message.complete(connection=mine)
    queue.publish("beside", channel="c")
    mine.commit()
    mine.close()
    assert sorted(m.text() for m in queue.claim(10)) == ["beside", "keyed"]


def test_the_servers_own_isolation_does_not_matter(mariadb: EmbeddedMariaDB, url: str) -> None:
    mariadb.execute("set global transaction isolation level serializable")
    try:
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
            queue.publish("x")
            mine: Any = connect(url)
            with mine.cursor() as cursor:  # a serializable reader would lock what it reads
                cursor.execute("set session transaction isolation level read committed")
            queue.publish("open", connection=mine)
            assert [m.text() for m in queue.claim(10)] == ["x"]
            mine.close()
    finally:
        mariadb.execute("set global transaction isolation level repeatable read")


def test_the_servers_temporary_folder_is_its_own(mariadb: EmbeddedMariaDB, url: str) -> None:
    """A starting server empties its temporary folder, which may hold another server's tables."""
    with connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("select @@tmpdir")
        (folder,) = cursor.fetchone()
    assert folder == str(mariadb.directory / "tmp")


def test_a_process_stopped_in_a_transaction_blocks_others_for_seconds_only(queue: Queue) -> None:
    """Readers of the history wait for the session that stamps it."""
    pool: Any = queue.database._runner._pool  # type: ignore[attr-defined]
    stopped = pool.acquire()
    with stopped.cursor() as cursor:
        cursor.execute("select n from laneway_turnstile where name = 'settle' for update")
    assert queue.history_since().entries == []
    pool.discard(stopped)


@pytest.mark.parametrize("got", [0, 1])
def test_a_late_commit_is_not_hidden_by_new_messages(url: str, got: int) -> None:
    """A claim that scans from its floor and finds something must not report that this was all."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Queue(url, clock=lambda: now, group_commit=False, upkeep_every=None) as queue:
        queue.install()
        assert not queue.claim()
        with closing(connect(url)) as late:
            queue.publish(b"late", channel="late", connection=late)
            now += timedelta(seconds=1)
            queue.publish(b"prompt", channel="prompt")
            assert [message.payload for message in queue.claim()] == [b"prompt"]
            late.commit()
        queue.channel("other").resume()
        queue.publish_many([b"other"] * got, channel="other")
        first = queue.claim(2)
        assert len(first) == got + 1 or first.look_again == timedelta(0)
        assert b"late" in [message.payload for message in (*first, *queue.claim(2))]


def test_a_claim_that_never_commits_blocks_only_its_own_channel(queue: Queue, url: str) -> None:
    """Its channel has waited longest, so every claim of one message finds it first."""
    channels = [f"c{number}" for number in range(30)]
    for channel in channels:
        queue.channel(channel).resume()
        queue.publish(channel, channel=channel)
    with closing(connect(url)) as stuck:
        with stuck.cursor() as cursor:
            id = pair_id(b"default", b"c0")
            cursor.execute("select id from laneway_channel where id = %s for update", [id])
        got = [message.text() for _ in channels[1:] for message in queue.claim(1)]
    assert sorted(got) == sorted(channels[1:])


def test_diagnose_finds_a_binlog_format_that_rejects_writes() -> None:
    server = MysqlServerSettings("10.11", 1, 1, 1, 1, 0, 16_777_216, "STATEMENT")
    findings = {finding.check: finding for finding in _server_findings(server)}
    assert findings["binlog_format"].level == "fail"
    for fine in (server._replace(binlog_format=b"MIXED"), server._replace(log_bin=0)):
        assert "binlog_format" not in {finding.check for finding in _server_findings(fine)}


def test_diagnose_reads_the_settings_of_the_server(queue: Queue) -> None:
    assert {finding.level for finding in queue.diagnose()} == {"ok"}
