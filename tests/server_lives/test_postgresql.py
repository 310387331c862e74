"""A number that was handed out is never handed out again, whatever the server forgot."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations

import psycopg
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from tests.server_lives.postgresql import (
    FORGETFUL,
    MANY,
    claim,
    cut_off,
    draw,
    kill_backend,
    replicas,
    stop_writing,
    until_up,
)


@pytest.fixture
def forgetful() -> Iterator[tuple[EmbeddedPostgres, Queue]]:
    with EmbeddedPostgres(settings=FORGETFUL) as server:
        queue = Queue(server.create_database("lives"))
        queue.install()
        with closing(queue):
            yield server, queue


def _known(queue: Queue) -> set[int]:
    return {message.id for message in queue.messages(limit=1000)}


def _kill_all(server: EmbeddedPostgres) -> None:
    server.kill()
    server.start()


@pytest.mark.parametrize("crash", [_kill_all, kill_backend])
def test_numbers_after_crashes(
    forgetful: tuple[EmbeddedPostgres, Queue], crash: Callable[[EmbeddedPostgres], None]
) -> None:
    server, queue = forgetful
    ids: list[int] = []
    fences: list[int] = []
    lost = 0
    for _ in range(3):
        stop_writing(server)
        more = draw(queue)
        ids += more[0]
        fences += more[1]
        crash(server)
        until_up(queue)
        lost += len(set(more[0]) - _known(queue))
    assert lost > 0  # else it is no test
    assert len(set(ids)) == len(ids) == 3 * MANY
    assert len(set(fences)) == len(fences) == 3 * MANY
    assert max(ids + fences) < 2**53


def test_without_a_new_life_numbers_come_twice(
    forgetful: tuple[EmbeddedPostgres, Queue],
) -> None:
    """What the test above would find."""
    server, queue = forgetful
    with psycopg.connect(server.url("lives"), autocommit=True) as connection:
        connection.execute(
            "create or replace function laneway.server_life_v1() returns bigint "
            "language sql as 'select 1::bigint'"
        )
    stop_writing(server)
    before = draw(queue)
    kill_backend(server)
    until_up(queue)
    after = draw(queue)
    assert [len(set(x) & set(y)) > 0 for x, y in zip(before, after, strict=True)] == [True, True]


def test_numbers_after_fail_overs(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    """Both replicas have stopped at the same place: the second one never heard of the first."""
    server, queue = forgetful
    with replicas(server, 2) as standbys:
        draw(queue, 3)
        cut_off(server, standbys)
        drawn = [draw(queue)]
        for old, new in zip([server, *standbys], standbys, strict=False):
            old.kill()
            new.promote()
            with closing(Queue(new.url("lives"))) as promoted:
                assert not _known(promoted) & set(drawn[-1][0])
                drawn.append(draw(promoted))
    for (ids, fences), (other_ids, other_fences) in combinations(drawn, 2):
        assert not set(ids) & set(other_ids)
        assert not set(fences) & set(other_fences)
        assert max(fences) < min(other_fences)


def test_a_copy_of_the_files_of_a_stopped_server(
    forgetful: tuple[EmbeddedPostgres, Queue],
) -> None:
    """Nothing was recovered and nothing promoted, but what the original gave out since is not known
    here."""
    server, queue = forgetful
    drawn = [draw(queue)]
    server.stop()
    copy = server.directory / "copy"
    shutil.copytree(server.data, copy)
    for path in [copy, *copy.rglob("*")]:
        shutil.chown(path, server.data.owner(), server.data.group())
    server.start()
    until_up(queue)
    drawn.append(draw(queue))
    server.stop()
    shutil.rmtree(server.data)
    copy.rename(server.data)
    server.start()
    until_up(queue)
    drawn.append(draw(queue))
    for (ids, fences), (other_ids, other_fences) in combinations(drawn, 2):
        assert not set(ids) & set(other_ids)
        assert not set(fences) & set(other_fences)


def test_every_sequence_is_moved(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    server, queue = forgetful
    queue.publish(None)
    with psycopg.connect(server.url("lives"), autocommit=True) as connection:
        rows = connection.execute(
            "select sequencename, last_value >= (select last_value from laneway.server_life) "
            "from pg_sequences where schemaname = 'laneway'"
        ).fetchall()
    assert {name for name, moved in rows if not moved} == {"mail_number"}


def test_a_life_begins_once(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    """Also in a transaction that is rolled back, in one that stays open, and for those who read an
    old snapshot."""
    server, queue = forgetful
    with (
        psycopg.connect(server.url("lives")) as open_one,
        psycopg.connect(server.url("lives")) as old,
    ):
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select 1")
        first = queue.publish(1, connection=open_one).id
        others = [queue.publish(n).id for n in range(2)]
        late = queue.publish(2, connection=old).id
        open_one.rollback()
        last = queue.publish(3).id
    assert first is not None
    assert [*others, late, last] == list(range(first + 1, first + 5))


def test_a_clock_that_went_back(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    server, queue = forgetful
    with psycopg.connect(server.url("lives"), autocommit=True) as connection:
        connection.execute("select setval('laneway.message_id', 3000000000000000)")
    ids = []
    for _ in range(2):
        ids.append(queue.publish(None).id or 0)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("checkpoint")
        kill_backend(server)
        until_up(queue)
    assert ids[0] >= 3_000_000_000_000_000 + 2**32
    assert ids[0] + 2**32 <= ids[1] < 2**53


def test_a_standby_says_what_it_is(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    server, _ = forgetful
    with (
        replicas(server, 1) as (standby,),
        psycopg.connect(standby.url("lives"), autocommit=True) as connection,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="standby"),
    ):
        connection.execute("select * from laneway.claim_v1(array['default'], 1, '1 s', 'w')")


def test_restored_messages_are_claimed_first(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    """What the lost server had ended waits again. A claimer that goes on remembers where the live
    part of that server's tables began."""
    server, queue = forgetful
    with replicas(server, 1) as (standby,):
        restored = [queue.publish(n).id for n in range(5)]
        cut_off(server, [standby])
        taken = claim(queue, 5)
        assert [row[0] for row in taken.rows] == restored
        queue.database.run(queue.database.engine.leases.complete([row[:2] for row in taken.rows]))
        for n in range(3):  # the floors pass what has ended
            queue.publish(n)
            claim(queue, 10)
        server.kill()
        standby.promote()
        with closing(Queue(standby.url("lives"))) as promoted:
            younger = promoted.publish(6).id
            engine, promoted.database.engine = promoted.database.engine, queue.database.engine
            assert [row[0] for row in claim(promoted, 10).rows] == [*restored, younger]
            promoted.database.engine = engine


def test_restored_leases_end_in_time(forgetful: tuple[EmbeddedPostgres, Queue]) -> None:
    """Upkeep remembers up to where leases have ended, too."""
    server, queue = forgetful
    with replicas(server, 1) as (standby,):
        queue.publish(1)
        engine = queue.database.engine
        with psycopg.connect(server.url("lives"), autocommit=True) as connection:
            connection.execute(
                "select laneway.claim_v1(array['default'], 1, '10 ms', 'w'), pg_sleep(0.1)"
            )
        cut_off(server, [standby])
        assert [queue.database.run(engine.maintenance.upkeep()).expired for _ in range(2)] == [1, 0]
        server.kill()
        standby.promote()
        with closing(Queue(standby.url("lives"))) as promoted:
            promoted.database.engine = engine
            assert [
                promoted.database.run(engine.maintenance.upkeep()).expired for _ in range(2)
            ] == [1, 0]
