"""One tenant's data is gone from the database and the lake, provably, and nobody else's is."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laneway import Message, Queue
from laneway.errors import InvalidOption, LakeMismatch
from laneway.lake import Lake
from laneway.lake.folder import Folder
from laneway.lake.synth import SyntheticHistory
from tests.cli.commands import Cli
from tests.lake.conftest import KEEP, LONG
from tests.lake.searching import in_files, in_tables
from tests.lake.test_at_once import before_call
from tests.lake.test_sync import damage, in_database, rows_of, run
from tests.place import Place, fresh_schema
from tests.stores import Databases

OLD = timedelta(0)
_MARIADB = pytest.param("mariadb", marks=pytest.mark.repeats("the same statements on SQLite"))


@pytest.fixture(params=["server", "sqlite_files", _MARIADB])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "mariadb" and not LONG and "tenant" not in request.node.name:
        pytest.skip("half a minute each: make test-spark-long")
    databases: Databases = request.getfixturevalue(request.param)
    schema = fresh_schema()
    return Place(databases.create_database(f"erase_{schema}"), schema)


@pytest.fixture
def queue(place: Place) -> Iterator[Queue]:
    with Queue(place.url, schema=place.schema, upkeep_every=None) as client:
        client.install()
        yield client


@pytest.fixture
def victim(story: SyntheticHistory) -> str:
    """A tenant of many: in every file, and not the largest."""
    counts = Counter(story.history["channel"].to_pylist())
    return str(counts.most_common(2)[1][0])


def of(rows: pa.Table, channel: str) -> int:
    return int(rows.filter(pc.equal(rows["channel"], channel)).num_rows)


def others(rows: pa.Table, channel: str) -> pa.Table:
    kept = rows.filter(pc.not_equal(rows["channel"], channel))
    return kept.drop_columns(["id", "xid"])


def check(lake: Lake, story: SyntheticHistory, channel: str) -> None:
    rows = rows_of(lake)
    assert of(rows, channel) == 0
    assert others(rows, channel).equals(others(story.history, channel))
    assert rows.num_rows == len(set(rows["id"].to_pylist()))
    checked = lake.verify(everything=True)
    assert (checked.damaged, checked.again, checked.lost) == ([], [], [])
    # What a killed run has staged lies there for two days, without the tenant.
    staged = [path for path in lake.folder.staged() if path.endswith(".parquet")]
    assert not any(of(lake.folder.read_table(path), channel) for path in staged)
    assert sum(batch.rows for batch in lake.catalog.batches()) == rows.num_rows
    found = lake.find_tenant(channel)
    assert (found.messages, found.history, found.lake_rows, found.files) == (0, 0, 0, 0)


def test_one_tenant_is_gone_and_all_others_are_whole(
    told: Lake, queue: Queue, story: SyntheticHistory, victim: str
) -> None:
    """Some of it is compacted, some only in the lake, some not in the lake yet."""
    told.sync(700)
    told.verify()
    told.compact(timedelta(days=2))
    told.purge(KEEP)
    queue.publish_many([b"waits"] * 3, channel=victim)
    queue.publish(b"stays", channel="somebody else")
    queue.publish(b"dies", channel=victim, queue="second")
    (dying,) = queue.claim(queues=["second"])
    dying.fail("for good")
    whole = of(story.history, victim)
    there = told.find_tenant(victim)
    assert (there.messages, there.dead_letters) == (3, 1)
    assert there.lake_rows == whole and there.files > 2

    done = told.erase(victim, actor="ann")
    assert (done.messages, done.dead_letters) == (3, 1)
    assert done.lake_rows == whole
    assert done.files_rewritten + done.files_removed == there.files
    assert done.found_again == 0 and done.files_read >= len(told.folder.history_files())
    rows = rows_of(told)
    assert of(rows, victim) == 0
    assert others(rows, victim).equals(others(story.history, victim))
    live = told.folder.read_table("live/snapshot.parquet")["channel"].to_pylist()
    assert live == ["somebody else"]
    assert [one.action for one in queue.audit()][:2] == ["erased", "erase"]
    last = queue.audit()[0]
    assert last.actor == "ann" and last.target["channel"] == victim
    assert last.target["found_again"] == 0 and last.affected == done.history + done.lake_rows
    check(told, story, victim)

    again = told.erase(victim)
    assert (again.lake_rows, again.history, again.files_rewritten) == (0, 0, 0)
    told.compact(OLD)
    told.purge(KEEP)
    check(told, story, victim)


def test_only_in_one_queue(told: Lake, story: SyntheticHistory, victim: str) -> None:
    told.sync()
    queues = Counter(row["queue"] for row in story.history.to_pylist() if row["channel"] == victim)
    assert len(queues) > 1
    chosen, count = queues.most_common()[0]
    assert told.erase(victim, queue=chosen).lake_rows == count
    assert of(rows_of(told), victim) == queues.total() - count


def test_what_would_bring_rows_back_is_refused(told: Lake, queue: Queue, victim: str) -> None:
    told.sync()
    whole = in_database(told)
    queue.publish(b"x", channel=victim)
    (running,) = queue.claim()
    with pytest.raises(InvalidOption, match=r"1 messages of channel .* are being worked on"):
        told.erase(victim)
    running.complete()
    queue.schedule("nightly", b"x", every=timedelta(days=1), channel=victim)
    with pytest.raises(InvalidOption, match=r"schedules publish to channel .*nightly"):
        told.erase(victim)
    queue.schedules.remove("nightly")
    with queue.flow("pages") as flow:
        first = flow.add(b"1", channel="somebody else")
        flow.add(b"2", channel=victim, after=first)
    with pytest.raises(InvalidOption, match=r"1 messages of channel .* wait in flows"):
        told.erase(victim)
    queue.flows.cancel(flow.id or 0)
    assert in_database(told) >= whole
    assert told.erase(victim).found_again == 0


def test_results_and_keys_go_too(lake: Lake, queue: Queue) -> None:
    for channel in ("mine", "yours"):
        queue.publish(b"x", channel=channel, key=f"order of {channel}", key_window=KEEP)
    queue.complete(list(queue.claim(2)))
    lake.sync()
    assert lake.erase("mine").history == 1
    assert queue.publish(b"x", channel="mine", key="order of mine").status == "published"
    assert queue.publish(b"x", channel="yours", key="order of yours").status != "published"


POINTS = [
    "tell:erase_keys:1", "tell:plan_batch:1", "folder:write_aside:1", "tell:note_compacted:1",
    "tell:correct_batch:1", "folder:move:1", "folder:remove_file:1", "tell:settle_file:1",
    "folder:staged:1",
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_run_is_finished_by_the_next(
    told: Lake, story: SyntheticHistory, place: Place, victim: str, point: str
) -> None:
    if point != "tell:plan_batch:1":
        told.sync(700)
    run(told, place, f"erase {victim}", point)
    assert told.erase(victim).found_again == 0
    check(told, story, victim)


@pytest.mark.parametrize("point", ["tell:note_compacted:2", "folder:move:2"])
def test_after_a_killed_run_every_other_command_works(
    told: Lake, story: SyntheticHistory, place: Place, victim: str, point: str
) -> None:
    told.sync(700)
    told.verify()
    run(told, place, f"erase {victim}", point)
    assert told.sync().rows == 0
    assert told.verify(everything=True).damaged == []
    told.compact(OLD)
    assert told.erase(victim).found_again == 0
    check(told, story, victim)


@pytest.mark.parametrize("where", ["write_aside:1", "move:1", "move:2", "remove_file:1"])
def test_a_compaction_at_the_same_time(
    told: Lake,
    story: SyntheticHistory,
    victim: str,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    told.sync(300)
    told.verify()
    method, count = where.split(":")
    before_call(monkeypatch, method, int(count), lambda: told.compact(OLD))
    assert told.erase(victim).found_again == 0
    check(told, story, victim)


def test_a_sync_that_was_asleep_brings_nothing_back(
    told: Lake,
    story: SyntheticHistory,
    victim: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has read the rows and planned its batch before they were erased, and writes them after."""
    # The first move is that of _lake.json: then the batch is planned, and its rows are not read.
    for move in (1, 2):
        with monkeypatch.context() as patched:
            before_call(patched, "move", move, lambda: told.erase(victim))
            told.sync(700)
        check(told, story, victim)


def test_a_sync_that_moves_its_file_at_the_last_moment_takes_it_back(
    told: Lake,
    story: SyntheticHistory,
    victim: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worst: the old file is put into its place after everything was proved."""
    monkeypatch.setattr(Folder, "staged", lambda self: [])
    with monkeypatch.context() as patched:
        before_call(patched, "move", 2, lambda: told.erase(victim))
        told.sync(700)
    monkeypatch.undo()
    check(told, story, victim)


@pytest.mark.parametrize("how", ["missing", "half", "changed"])
def test_a_damaged_file_is_named_before_anything_is_deleted(
    told: Lake, story: SyntheticHistory, victim: str, how: str
) -> None:
    told.sync(700)
    whole = in_database(told)
    path = damage(told, how)
    with pytest.raises(LakeMismatch, match=f"{path} is damaged .*lake verify --all"):
        told.erase(victim)
    assert in_database(told) == whole
    assert told.verify(everything=True).again
    told.sync()
    assert told.erase(victim).found_again == 0
    check(told, story, victim)


def test_on_the_command_line(told: Lake, place: Place, story: SyntheticHistory) -> None:
    cli = Cli(place.url, place.schema)
    told.sync()
    victim = story.history["channel"][0].as_py()
    words = ("lake", "erase", "--lake", told.folder.root, "--channel", victim)
    (found,) = cli.json(*words, "--dry-run")
    assert found["lake_rows"] == of(story.history, victim) > 0
    assert "add --yes" in cli.run(*words, code=2).stderr
    shown = cli.run(*words, "--yes").stdout
    assert "files rewritten" in shown and "were read again: 0 rows found" in shown
    (found,) = cli.json(*words, "--yes")
    assert found["lake_rows"] == found["found_again"] == 0


TENANT = "geheim & co"  # nothing else is called so
_numbers = count()


def test_nothing_holds_the_tenants_name_or_what_it_sent(
    lake: Lake, queue: Queue, place: Place, tmp_path: Path
) -> None:
    """Every column of every table and every file is searched, but for what the page names."""
    _live(queue)
    lake.sync()
    queue.upkeep()
    _live(queue)  # some of it is counted, synced and verified, some is not
    lake.verify()
    for _ in range(2):  # the second finds nothing to do, and leaves nothing either
        lake.erase(TENANT, actor="ann")
        for text in (TENANT, "body of geheim"):
            left = in_tables(place, text)
            assert {column.partition(".")[0] for column in left} <= {"audit"}, left
            assert in_files(tmp_path / "lake", text) == []
    assert in_tables(place, "somebody else"), "the search finds what is there"
    queue.upkeep()
    assert {column.partition(".")[0] for column in in_tables(place, TENANT)} <= {"audit"}
    assert sum(one.dead for one in queue.stats()) == len(queue.dead_letters.list(queue=queue.name))
    assert {one.channel for one in queue.channel_stats(queue=queue.name)} == {"somebody else"}


def _live(queue: Queue) -> None:
    """What a tenant can do, and somebody else beside it."""
    for channel in (TENANT, "somebody else"):
        body = "body of geheim" if channel == TENANT else "another's"
        queue.channel(channel).limit(weight=2, concurrency=50)
        for _ in range(3):
            queue.publish({"body": body}, channel=channel, headers={"body": body})
        for end in ("complete", "fail", "discard", "defer", "redrive"):
            message = _started(queue, channel, body)
            if end == "complete":
                message.complete(result={"body": body})
            elif end == "defer":
                message.defer(timedelta(hours=1), state={"body": body})
            else:
                message.fail(f"no {body}")
            if end in ("discard", "redrive"):
                getattr(queue.dead_letters, end)([message.id])
        key = f"waits {body} {next(_numbers)}"
        queue.publish({"body": body}, channel=channel, key=key, delay=3600)
        queue.operations.start("redrive", channel=channel, reason="none")


def _started(queue: Queue, channel: str, body: str) -> Message:
    published = queue.publish(
        {"body": body},
        channel=channel,
        key=f"{body} {next(_numbers)}",
        key_window=timedelta(days=1),
        keep_result=timedelta(days=1),
        priority=100,
    )
    claimed = {one.id: one for one in queue.claim(50)}
    message = claimed.pop(published.id or 0)
    for other in claimed.values():
        other.give_back()
    return message
