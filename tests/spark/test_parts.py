"""Parts of a bulk publish: loaded into the table of messages, seen by nobody until their job
commits, and swept when its driver is gone. None of these needs Spark."""

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psutil
import psycopg
import pyarrow
import pytest
from psycopg import sql
from pyspark.sql.types import BinaryType, StructField, StructType

from laneway import Queue
from laneway.contract import DEFAULT_MAX_ATTEMPTS
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import InvalidPayload
from laneway.payload import JSON
from laneway.spark import store
from laneway.spark.errors import JobIsOver
from laneway.spark.options import parse
from laneway.spark.publish import keeper
from laneway.spark.publish import load as loading
from laneway.spark.publish.load import load
from laneway.spark.publish.writer import LanewayWriter
from tests.place import Place
from tests.spark.conftest import options

_SWEEP_NOW = "select {s}.sweep_staged_v1(20, '0')"


def look(place: Place, text: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(place.url) as connection:
        statement = sql.SQL(text).format(s=sql.Identifier(place.schema))
        return connection.execute(statement, values or None).fetchall()


def leftovers(place: Place) -> list[str]:
    """The tables in which a job has left something."""
    tables = {
        "staged": "true",
        "staged_part": "true",
        "staged_work": "true",
        "message": "part in (select id from {s}.staged_part)",
    }
    return [
        name
        for name, which in tables.items()
        if look(place, f"select exists (select from {{s}}.{name} where {which})") == [(True,)]  # noqa: S608
    ]


def rows(*payloads: bytes, **more: Any) -> Iterator[pyarrow.RecordBatch]:
    yield pyarrow.RecordBatch.from_pydict({"payload": list(payloads), **more})


def loaded(
    place: Place,
    batches: Iterator[pyarrow.RecordBatch],
    content_type: str = "text/plain",
    **more: Any,
) -> list[int]:
    """The parts of one attempt for the job 'job'."""
    defaults: dict[str, Any] = {"kind": "", "content_type": content_type, "priority": 0}
    defaults |= {"max_attempts": DEFAULT_MAX_ATTEMPTS}
    return load(parse(options(place, **more), "write"), "job", defaults, batches)[0]


def publish(place: Place, parts: list[int], source: str | None = None) -> tuple[int, int, bool]:
    call = "select * from {s}.publish_parts_v1('job', %s, %s)"
    published, existing, repeated = look(place, call, parts, source)[0]
    return published, existing, repeated


@pytest.fixture
def job(queue: Queue, place: Place) -> None:
    look(place, "select {s}.open_job_v1('job')")


@pytest.mark.parametrize("at_row", [0, 1])
def test_an_attempt_that_outlives_its_job_leaves_nothing(
    job: None, place: Place, at_row: int
) -> None:
    """Spark gives a job up without waiting for the tasks that are still under way."""

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for row in range(2):
            if row == at_row:
                look(place, "select {s}.unstage_v1('job')")
            yield from rows(b"x")

    with pytest.raises(JobIsOver):
        loaded(place, batches())
    assert leftovers(place) == []


def test_whoever_ends_a_job_waits_for_an_attempt_that_commits(job: None, place: Place) -> None:
    with psycopg.connect(place.url) as task, ThreadPoolExecutor() as pool:
        task.execute(sql.SQL("set search_path = {}").format(sql.Identifier(place.schema)))
        none = ", ".join(["'{}'"] * 7)
        task.execute(f"select end_part_v1('job', 1, 1, false, {none}, '{{1}}')".encode())
        ending = pool.submit(look, place, "select {s}.unstage_v1('job')")
        with pytest.raises(TimeoutError):
            ending.result(timeout=0.5)
        assert look(place, _SWEEP_NOW) == [(0,)], "a sweep does not wait"
        task.commit()
        ending.result()
    assert leftovers(place) == ["staged_part", "staged_work"]
    assert look(place, "select {s}.sweep_staged_v1()") == [(1,)]
    assert leftovers(place) == []


def test_the_rows_of_a_job_whose_driver_is_gone_are_swept(job: None, place: Place) -> None:
    """As soon as nobody holds the job's lock; never while somebody does."""
    parts = loaded(place, rows(*[b"x"] * 50))
    with psycopg.connect(place.url) as driver:
        hold = sql.SQL("select {}.hold_job_v1('job')").format(sql.Identifier(place.schema))
        assert driver.execute(hold).fetchone() == (True,)
        assert look(place, _SWEEP_NOW) == [(0,)]
        assert leftovers(place) == ["staged", "staged_part", "staged_work", "message"]
    assert look(place, "select {s}.sweep_staged_v1()") == [(0,)], "a new job has a minute"
    assert [look(place, _SWEEP_NOW)[0][0] for _ in range(3)] == [20, 20, 12]
    assert leftovers(place) == []
    with pytest.raises(psycopg.Error, match="was given up"):
        publish(place, parts)
    assert look(place, "select count(*) from {s}.message") == [(0,)]


def test_upkeep_sweeps(job: None, queue: Queue, place: Place) -> None:
    loaded(place, rows(b"x"))
    look(place, "select {s}.unstage_v1('job')")
    assert leftovers(place) == ["staged_part", "staged_work", "message"]
    queue.upkeep()
    assert leftovers(place) == []


def test_a_job_that_commits_is_not_swept(job: None, queue: Queue, place: Place) -> None:
    """Its driver may be gone: the server still commits what it was told to."""
    parts = loaded(place, rows(b"a", b"b"))
    with psycopg.connect(place.url) as driver:
        text = sql.SQL("select {}.publish_parts_v1('job', %s)").format(sql.Identifier(place.schema))
        driver.execute(text, [parts])
        assert look(place, _SWEEP_NOW) == [(0,)]
        assert list(queue.claim(10)) == []
    assert len(list(queue.claim(10))) == 2
    assert leftovers(place) == []


def test_a_killed_driver_lets_go_of_its_job(job: None, place: Place) -> None:
    """The keeper's own process: it holds the lock while the driver lives, and ends with it."""
    program = (
        "import sys; from laneway.spark.publish import keeper;"
        "keeper.keep(*sys.argv[1:], after=0); print(flush=True); sys.stdin.read()"
    )
    hold = f"select \"{place.schema}\".hold_job_v1('job')"
    command = [sys.executable, "-c", program, place.url, hold]
    free = "select pg_try_advisory_xact_lock({s}.job_lock_v1('job'))"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        wait_until(lambda: look(place, free) == [(False,)])
        driver.kill()
    wait_until(lambda: look(place, free) == [(True,)])


@pytest.mark.parametrize("after", [0.0, 60.0])
def test_the_process_that_holds_a_job_ends_with_it(job: None, place: Place, after: float) -> None:
    """Whether it has connected already or not; and nobody else who got its number since."""
    hold = f"select \"{place.schema}\".hold_job_v1('job')"
    connected = f"select count(*) from pg_stat_activity where query = $${hold}$$"  # noqa: S608
    kept = keeper.keep(place.url, hold, after)
    process = psutil.Process(kept.pid)
    if after:
        wait_until(process.children)
    else:
        wait_until(lambda: look(place, connected) == [(1,)])
    processes = [process, *process.children()]
    keeper.end(kept._replace(began="1"))
    assert all(map(is_running, processes))
    keeper.end(kept)
    wait_until(lambda: not any(map(is_running, processes)))
    wait_until(lambda: look(place, connected) == [(0,)])


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_the_end_of_a_job_ends_its_process(queue: Queue, place: Place, ends: str) -> None:
    schema = StructType([StructField("payload", BinaryType())])
    writer = LanewayWriter(parse(options(place), "write"), schema)
    ended = psutil.Process(writer.keeper.pid)
    assert is_running(ended)
    getattr(pickle.loads(pickle.dumps(writer)), ends)([])
    # By itself it would look after twenty seconds.
    ended_by = time.monotonic() + keeper._CONNECTS_AFTER / 2
    while is_running(ended):
        assert time.monotonic() < ended_by
        time.sleep(0.05)
    assert leftovers(place) == []


def test_the_process_connects_long_before_anybody_sweeps(queue: Queue, place: Place) -> None:
    told = "select pg_get_function_arguments('{s}.sweep_staged_v1'::regproc)"
    assert "p_age interval DEFAULT '00:01:00'::interval" in look(place, told)[0][0]
    assert keeper._CONNECTS_AFTER <= 30


def is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def wait_until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_nobody_sees_what_is_not_committed(queue: Queue, place: Place) -> None:
    """Not a claim that comes past its rows, not a look, not a cancel, not a limit; then all at
    once."""
    before = queue.publish(b"before")
    look(place, "select {s}.open_job_v1('job')")
    parts = loaded(place, rows(*[b"x"] * 30))
    parts += loaded(place, rows(b"past", expires_at=[datetime.now(UTC) - timedelta(minutes=1)]))
    parts += loaded(place, rows(b"later", delay=[timedelta(hours=1)]))
    hidden = [row[0] for row in look(place, "select id from {s}.message where part is not null")]
    after = queue.publish(b"after")
    queue.channel("default").limit(backlog=3)
    assert queue.publish(b"third").status == "published"
    claimed = list(queue.claim(10))
    assert [message.payload for message in claimed] == [b"before", b"after", b"third"]
    assert [message.id for message in queue.messages()] == [before.id, after.id, claimed[2].id]
    assert {one.status for one in queue.cancel(hidden)} == {"absent"}
    assert {one.status for one in queue.run_now(hidden)} == {"absent"}
    assert queue.message(hidden[0]) is None
    assert queue.upkeep().lapsed == 0
    assert queue.stats()[0].waiting == 0
    queue.complete(claimed)
    queue.channel("default").limit(backlog=None)
    assert publish(place, parts) == (32, 0, False)
    # A call of the client may have brought upkeep along, by which one of them lapses.
    lapsed = "(select count(*) from {s}.history where outcome = 'lapsed')"
    assert look(place, f"select count(*) + {lapsed} from {{s}}.message_v1") == [(32,)]  # noqa: S608
    assert [message.payload for message in queue.claim(100)] == [b"x"] * 30
    queue.upkeep()
    assert look(place, f"select {lapsed}") == [(1,)]
    assert leftovers(place) == []


def test_a_claim_sees_all_of_a_job_or_nothing(job: None, queue: Queue, place: Place) -> None:
    """In one snapshot that was taken before the commit, and in one taken after it."""
    parts = [*loaded(place, rows(b"a", b"b")), *loaded(place, rows(b"c"))]
    count = sql.SQL("select count(*) from {}.message_v1").format(sql.Identifier(place.schema))
    with psycopg.connect(place.url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert old.execute(count).fetchone() == (0,)
        publish(place, parts)
        assert old.execute(count).fetchone() == (0,)
        old.rollback()
        assert old.execute(count).fetchone() == (3,)
    assert len(list(queue.claim(10))) == 3


def test_a_crash_of_the_server_takes_all_of_a_job_or_nothing() -> None:
    """Parts are committed without waiting for the disk, jobs are not."""
    slow_writer = {"wal_writer_delay": "10s"}
    with EmbeddedPostgres(settings=slow_writer) as server:
        place = Place(server.create_database("crash"), "laneway")
        with Queue(place.url, schema=place.schema) as queue:
            queue.install()
        look(place, "select {s}.open_job_v1('job')")
        lost = loaded(place, rows(*[b"x"] * 50))
        server.kill()
        server.start()
        with pytest.raises(psycopg.Error, match="was given up"):
            publish(place, lost)
        assert look(place, "select count(*) from {s}.message") == [(0,)]
        kept = loaded(place, rows(*[b"x"] * 50))
        assert publish(place, kept) == (50, 0, False)
        server.kill()
        server.start()
        assert look(place, "select count(*) from {s}.message") == [(50,)]
        assert leftovers(place) == []


def test_what_a_part_leaves_out_the_table_has(job: None, queue: Queue, place: Place) -> None:
    """A frame of payloads alone, and one that says in columns of its own what everybody has."""
    said: dict[str, Any] = {"queue": "default", "channel": "default", "kind": ""}
    said |= {"content_type": JSON, "priority": 0, "max_attempts": DEFAULT_MAX_ATTEMPTS}
    said |= {"headers": "{}"}
    columns = {name: [value] for name, value in said.items()}
    parts = loaded(place, rows(b"1"), content_type=JSON)
    assert publish(place, parts + loaded(place, rows(b"1", **columns))) == (2, 0, False)
    found = look(
        place,
        "select channel_id, queue, channel, kind, content_type, priority, max_attempts, headers,"
        " attempt, spent, by_kind from {s}.message",
    )
    assert found[0] == found[1] and found[0][1:7] == tuple(said.values())[:-1]


def test_what_is_left_out_is_what_the_table_has(job: None, queue: Queue, place: Place) -> None:
    said = loading._LEFT_OUT._asdict()
    chosen = parse(options(place, queue=said.pop("queue"), channel=said.pop("channel")), "write")
    publish(place, load(chosen, "job", said, rows(b"1"))[0])
    names = ", ".join(name for name in loading.Label._fields if name != "headers")
    found = look(place, f"select {names}, headers from {{s}}.message")  # noqa: S608
    assert found == [(*loading._LEFT_OUT[:-1], None)]


def test_a_part_is_published_when_its_loading_began(job: None, queue: Queue, place: Place) -> None:
    """Without times of its own. It is found from the first of its job on."""
    early, late = loaded(place, rows(*b"1 2".split())), loaded(place, rows(*b"3 4".split()))
    publish(place, early + late)
    times = look(
        place,
        "select due, published_at = due, first_published_at = due, count(*) from {s}.message"
        " group by 1, 2, 3 order by 1",
    )
    assert [row[1:] for row in times] == [(True, True, 2)] * 2 and times[0][0] < times[1][0]
    assert look(place, "select due, n from {s}.wake") == [(times[0][0], 4)]
    assert [message.payload for message in queue.claim(10)] == b"1 2 3 4".split()


def test_keys_of_a_frame(job: None, queue: Queue, place: Place) -> None:
    """In use before, in use by an earlier row, free: and only what is published is counted."""
    first = queue.publish(b"old", key="a", channel="c")
    keys = ["a", "b", None, "b", "c", None]
    parts = loaded(place, rows(*b"0 1 2 3 4 5".split(), key=keys), channel="c")
    assert publish(place, parts) == (4, 2, False)
    assert look(place, "select sum(n) from {s}.staged_count") == [(4,)]
    found = [message.payload for message in queue.claim(10)]
    assert found == [b"old", b"1", b"2", b"4", b"5"], "by due time: a part's is when it is loaded"
    assert queue.publish(b"again", channel="c", key="a").id == first.id
    assert queue.publish(b"again", channel="c", key="b").status == "existing"


def test_keys_of_a_frame_hold_where_it_says(job: None, queue: Queue, place: Place) -> None:
    columns: dict[str, list[str | None]] = {
        "key": ["a"] * 6,
        "channel": ["c", "d", None, "c", "d", "c"],
        "kind": ["", None, "x", "", "x", "x"],
        "key_scope": ["kind", None, "queue", "queue", "channel", "channel"],
    }
    parts = loaded(place, rows(*b"0 1 2 3 4 5".split(), **columns), channel="e")
    assert publish(place, parts) == (5, 1, False)
    found = {message.payload: message for message in queue.claim(10)}
    assert sorted(found) == b"0 1 2 4 5".split()
    assert {message.key for message in found.values()} == {"a"}
    for payload, place_of in {
        b"0": {"channel": "c"},
        b"1": {"channel": "d"},
        b"2": {"channel": "c", "key_scope": "queue"},
        b"4": {"channel": "d", "key_scope": "channel"},
        b"5": {"channel": "c", "kind": "y", "key_scope": "channel"},
    }.items():
        again = queue.publish(b"again", key="a", **place_of)  # type: ignore[arg-type]
        assert (again.status, again.id) == ("existing", found[payload].id)
    assert queue.publish(b"own", key="a", channel="e").status == "published"


def test_a_key_that_is_about_to_be_released_is_in_use(
    job: None, queue: Queue, place: Place
) -> None:
    """A job does not wait for the transaction that ends the message of a key: it may last."""
    queue.publish(b"old", key="b")
    claim = queue.claim(1)
    parts = loaded(place, rows(b"0", b"1", key=["a", "b"]))
    call = sql.SQL("select published, existing from {}.publish_parts_v1('job', %s)")
    never = "-c statement_timeout=30s"  # else it would wait for this test itself
    with psycopg.connect(place.url) as ending, psycopg.connect(place.url, options=never) as job_end:
        queue.complete(claim, connection=ending)
        found = job_end.execute(call.format(sql.Identifier(place.schema)), [parts]).fetchone()
    assert found == (1, 1)


def test_a_key_of_an_open_publish_is_waited_for(job: None, queue: Queue, place: Place) -> None:
    """It is known only then whose it is."""
    parts = loaded(place, rows(b"0", b"1", key=["a", "b"]))
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like %s"
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(place.url) as other:
            queue.publish(b"other", key="b", connection=other)
            result = pool.submit(publish, place, parts)
            while not look(place, waits, f"%{place.schema}%publish_parts%"):
                assert not result.done()
            other.rollback()
        assert result.result() == (2, 0, False)


def test_tasks_of_one_process_share_a_connection(
    job: None, queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it works and the last task ended well."""
    monkeypatch.setattr(store, "_KEPT_FOR", 600.0)
    connections = store.TaskConnections()
    monkeypatch.setattr(loading, "TASKS", connections)

    def backend() -> int | None:
        kept = connections._kept
        return None if kept is None else kept.connection.info.backend_pid

    parts = loaded(place, rows(b"a"))
    first = backend()
    parts += loaded(place, rows(b"b"))
    assert backend() == first is not None
    look(place, "select pg_terminate_backend(%s, 10000)", first)
    parts += loaded(place, rows(b"c"))
    second = backend()
    assert second not in (None, first)
    with pytest.raises(InvalidPayload):
        loaded(place, rows(b"d", headers=["no object"]))
    assert backend() in (None, second)
    assert publish(place, parts) == (3, 0, False)
    with pytest.raises(JobIsOver):
        loaded(place, rows(b"e"))
    assert backend() is None


def test_a_connection_of_a_task_is_not_kept_for_long(
    job: None, queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_KEPT_FOR", 0.1)
    connections = store.TaskConnections()
    with connections.transaction(parse(options(place), "write").address) as one:
        backend = one.connection.info.backend_pid
    while look(place, "select pid from pg_stat_activity where pid = %s", backend):
        pass
    assert one.connection.closed


def test_a_key_whose_time_is_over_is_free(job: None, queue: Queue, place: Place) -> None:
    queue.publish(b"old", key="a", key_window=timedelta(days=1))
    queue.complete(queue.claim(1))
    look(place, "update {s}.dedupe set expires_at = now() - interval '1 day' returning 1")
    parts = loaded(place, rows(b"new", key=["a"], key_window=[timedelta(hours=30)]))
    assert publish(place, parts) == (1, 0, False)
    assert look(place, "select key_window from {s}.message") == [(timedelta(hours=30),)]


def test_of_two_complete_attempts_one_is_published(job: None, queue: Queue, place: Place) -> None:
    """A retried or speculative task: both attempts loaded all their rows and ended well; Spark
    hands the driver what one of them said."""
    attempts = [loaded(place, rows(b"a", b"b")) for _ in range(2)]
    assert publish(place, attempts[1]) == (2, 0, False)
    assert leftovers(place) == ["staged_part", "staged_work", "message"]
    assert [message.payload for message in queue.claim(10)] == [b"a", b"b"]
    look(place, "select {s}.sweep_staged_v1()")
    assert leftovers(place) == []
    assert look(place, "select payload from {s}.message order by 1") == [(b"a",), (b"b",)]


def test_a_queue_that_is_claimed_by_kind_while_a_job_loads(queue: Queue, place: Place) -> None:
    """Also where one message at a time starts, of whatever kind comes next."""
    queue.channel("one").limit(concurrency=1)
    for channel in ("default", "one"):
        queue.publish(b"before", kind="k1", channel=channel)
    look(place, "select {s}.open_job_v1('job')")
    parts = loaded(place, rows(b"a", b"b", kind=["k1", "k2"]))
    parts += loaded(place, rows(b"A", kind=["k1"]), channel="one")
    found = by_kind(queue, "k1", 2)
    parts += loaded(place, rows(b"c", b"d", kind=["k1", "k2"]))
    parts += loaded(place, rows(b"C", kind=["k1"]), channel="one")
    assert found + by_kind(queue, "k1", 0) == [b"before", b"before"]
    publish(place, parts)
    assert by_kind(queue, "k2", 2) == [b"b", b"d"]
    assert by_kind(queue, "k1", 4) == [b"A", b"C", b"a", b"c"]
    queue.publish(b"before", kind="k1")
    look(place, "select {s}.open_job_v1('job')")
    loaded(place, rows(b"x", kind=["k1"]))
    queue.publish(b"after", kind="k1")
    assert by_kind(queue, "k1", 2) == [b"after", b"before"]


def by_kind(queue: Queue, kind: str, count: int) -> list[bytes]:
    """What can be claimed of a kind and completed, once so many were found."""
    found = list[bytes]()
    for _ in range(100):
        claimed = list(queue.claim(10, kinds=[kind]))
        queue.complete(claimed)
        found += [message.payload for message in claimed]
        if not claimed and len(found) >= count:
            break
    return sorted(found)


def test_more_combinations_than_a_part_may_have(
    job: None, queue: Queue, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_MOST_WORK", 3)
    batches = [next(rows(b"%d" % n, channel=[f"c{n % 5}"])) for n in range(20)]
    parts = loaded(place, iter(batches))
    assert len(parts) == 7
    assert publish(place, parts) == (20, 0, False)
    assert sorted(int(message.payload) for message in queue.claim(50)) == list(range(20))


def test_rows_go_to_their_channels_in_their_order(job: None, queue: Queue, place: Place) -> None:
    """Tasks compute the channel's id themselves and put the rows of a channel side by side."""
    names = ["ü", None, "a", "naïve", "ü", "a", None, "😀", "ü", "a"]
    payloads, queues = [str(n).encode() for n in range(10)], ["q", "ñ"] * 5
    batch = rows(*payloads, queue=queues, channel=names, headers=['{"h": 1}', "{}"] * 5)
    publish(place, loaded(place, batch, channel="main"))
    found = look(place, "select queue, channel, payload from {s}.message order by id")
    expected = list(zip(queues, [name or "main" for name in names], payloads, strict=True))
    assert sorted(found) == sorted(expected)
    for lane in {row[:2] for row in expected}:
        assert [row for row in found if row[:2] == lane] == [
            row for row in expected if row[:2] == lane
        ]
    changes = sum(one[:2] != two[:2] for one, two in pairwise(found))
    assert changes + 1 == len({row[:2] for row in expected})
    wrong = (
        "select 1 from {s}.message m where m.channel_id <> {s}.channel_id_v1(m.queue, m.channel)"
        " or (m.queue = 'q') <> (m.headers is not null)"
    )
    assert look(place, wrong) == []
    assert look(place, "select sum(n) from {s}.wake") == [(10,)]


def test_a_task_holds_a_batch_or_two_at_a_time(job: None, place: Place) -> None:
    """However many rows it has: looked at whenever it asks for more of them."""
    allocated: list[int] = []
    channels = [f"c{n % 10}" for n in range(1_000)]

    def batches() -> Iterator[pyarrow.RecordBatch]:
        before = pyarrow.total_allocated_bytes()
        for _ in range(40):
            yield next(rows(*[b"x" * 1_000] * 1_000, channel=channels))
            allocated.append(pyarrow.total_allocated_bytes() - before)

    assert publish(place, loaded(place, batches())) == (40_000, 0, False)
    assert max(allocated) < 8_000_000, "a batch has a million bytes"
