"""The cluster's exporter: right numbers, one read at a time, an answer in time."""

import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from laneway import Queue, Worker
from laneway.client.shared.options import looking_url
from laneway.dev.embedded import EmbeddedPostgres
from laneway.exporter import Exporter
from laneway.exporter.counters import METRICS, MOST_KINDS, OTHER, Counters
from laneway.exporter.reader import SnapshotReader, read_snapshot
from laneway.limits import Breaker
from laneway.operations import Minute
from tests.conftest import SETTINGS
from tests.exporter.scraped import Scraped, counted, scraped
from tests.frozen import frozen
from tests.place import Place, fresh_schema

HOSTILE = 'q"\\\n{}=" 1'


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(f"sqlite:///{tmp_path}/queue.db", upkeep_every=None) as opened:
        opened.install()
        yield opened


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def any_queue(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[Queue]:
    url, schema = f"sqlite:///{tmp_path}/queue.db", "laneway"
    if request.param == "postgresql":
        url, schema = place
    elif request.param == "mariadb":
        url = request.getfixturevalue("mariadb").create_database(fresh_schema())
    with Queue(url, schema=schema, upkeep_every=None) as opened:
        opened.install()
        yield opened


def test_messages_ages_and_blocked_channels(any_queue: Queue) -> None:
    queue = any_queue
    queue.publish_many(range(5), channel="a")
    queue.publish(1, channel="a", delay=3600)
    queue.publish_many(range(3), channel="b", queue="other")
    queue.channel("b", queue="other").pause()
    queue.channel("a").limit(concurrency=1)
    (message,) = queue.claim()
    found = scraped(Exporter(queue))
    assert found("laneway_up") == 1
    assert found("laneway_messages", queue="default", state="waiting") == 4
    assert found("laneway_messages", queue="default", state="leased") == 1
    assert found("laneway_messages", queue="default", state="scheduled") == 1
    assert found("laneway_messages", queue="other", state="waiting") == 3
    assert found("laneway_messages_exact", queue="other") == 1
    age = found("laneway_oldest_seconds", queue="other")
    assert age is not None and 0 <= age < 60
    assert found("laneway_channels_blocked", queue="other", reason="paused") == 1
    assert found("laneway_channels_blocked", queue="default", reason="concurrency") == 1
    assert found("laneway_schema_version") == found("laneway_schema_version_needed")
    message.fail("no")
    again = scraped(Exporter(queue))
    assert again("laneway_messages", queue="default", state="dead") == 1


def test_shared_limits_and_their_breakers(any_queue: Queue) -> None:
    queue = any_queue
    queue.limits["api"].set(concurrency=3, breaker=Breaker(minimum=1))
    for number in range(2):
        queue.publish(number, channel="c", limits=["api"])
    while claim := queue.claim():
        claim[0].fail("no")
    again = scraped(Exporter(queue))
    assert again("laneway_limit_breaker", limit="api", state="open") == 1
    assert again("laneway_limit_breaker", limit="api", state="closed") == 0
    assert again("laneway_limit_in_force", limit="api") == 1
    assert again("laneway_limit_running", limit="api") == 0


def test_counters_rise_by_what_happened_since_the_exporter_began(any_queue: Queue) -> None:
    queue = any_queue
    queue.publish(0, kind="early")
    queue.complete(queue.claim())
    while not sum(minute.completed for minute in queue.minutes()):
        queue.upkeep()
    exporter = Exporter(queue, max_age=0)
    counted(queue, exporter, "laneway_up", 1)
    queue.publish_many(range(4), queue="late")
    for payload in range(3):
        queue.publish(payload, kind="mail")
    first, second, third = queue.claim(3)
    first.complete()
    second.fail("no")
    third.defer(3600, error=ValueError("later"))
    found = counted(queue, exporter, "laneway_started_total", 3, kind="mail")
    place = {"queue": "default", "kind": "mail"}
    assert not found.total("laneway_published_total", kind="early")
    assert not found.total("laneway_ended_total", kind="early")
    assert found("laneway_published_total", **place) == 3
    for outcome, count in {"completed": 1, "failed": 1, "retried": 1, "expired": 0}.items():
        assert found("laneway_ended_total", **place, outcome=outcome) == count, outcome
    assert found("laneway_dead_total", **place) == 1
    assert found("laneway_wait_seconds_count", **place) == 3
    assert found("laneway_wait_seconds_bucket", **place, le="+Inf") == 3
    assert found("laneway_run_seconds_bucket", **place, le="21600.0") == 3
    late = counted(queue, exporter, "laneway_published_total", 4, queue="late")
    assert late("laneway_published_total", queue="late", kind="") == 4


def test_workers_by_state_and_queue(any_queue: Queue) -> None:
    queue = any_queue
    queue.publish(1, queue="unserved")
    worker = Worker(queue, queues=["a", "b"], concurrency=7)
    started, release = threading.Event(), threading.Event()

    @worker.default_handler
    def wait(payload: int) -> None:
        started.set()
        release.wait(60)

    queue.publish(1, queue="a")
    running = threading.Thread(target=worker.run, kwargs={"max_messages": 1})
    running.start()
    try:
        assert started.wait(60)
        exporter = Exporter(queue, max_age=0)
        found = counted(queue, exporter, "laneway_worker_slots", 7)
        assert found("laneway_workers", state="running") == 1
        assert found("laneway_workers", state="vanished") == 0
        assert found("laneway_queue_workers", queue="a") == 1
        assert found("laneway_queue_workers", queue="b") == 1
        assert found("laneway_queue_workers", queue="unserved") == 0
        assert found("laneway_worker_slots_used") in (0, 1)
    finally:
        release.set()
        running.join()
    assert scraped(exporter)("laneway_workers", state="running") == 0


def test_every_metric_is_in_the_catalog_with_its_labels(queue: Queue) -> None:
    queue.publish(1, queue=HOSTILE.replace("\n", ""), channel="a channel")
    exporter = Exporter(queue, max_age=0)
    scraped(exporter)
    found = counted(queue, exporter, "laneway_up", 1)
    for metric in METRICS:
        suffix = "_bucket" if metric.type == "histogram" else ""
        labels = {*metric.labels, "le"} if suffix else set(metric.labels)
        for series in found.labels(metric.name + suffix):
            assert set(series) == labels, metric.name
    known = {metric.name for metric in METRICS}
    for sample in found.samples:
        name = re.sub("_(bucket|count)$", "", sample.name)
        assert {sample.name, name} & known, sample.name
        assert "channel" not in sample.labels
    assert "a channel" not in found.text
    assert any(s.labels.get("queue") == HOSTILE.replace("\n", "") for s in found.samples)


def test_a_crowd_of_scrapers_costs_one_read(queue: Queue) -> None:
    reads = []

    def read() -> object:
        reads.append(1)
        time.sleep(0.2)
        return read_snapshot(queue)

    reader = SnapshotReader(read, 60, 20)  # type: ignore[arg-type]
    threads = [threading.Thread(target=reader.get) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reads) == 1
    assert reader.get().problem is None and len(reads) == 1, "the answer is given again"


def test_a_failed_read_says_so_and_is_tried_again(queue: Queue) -> None:
    exporter = Exporter(queue, max_age=0)
    assert scraped(exporter)("laneway_up") == 1
    queue.uninstall()
    found = scraped(exporter)
    assert found("laneway_up") == 0
    age = found("laneway_snapshot_age_seconds")
    assert age is not None and age > 0
    queue.install()
    assert scraped(exporter)("laneway_up") == 1


def test_made_up_kinds_do_not_become_series(queue: Queue) -> None:
    counters = Counters()
    at = queue.clock()
    counters.add([])
    minutes = [Minute(at, "q", f"kind {n}", published=1) for n in range(MOST_KINDS + 100)]
    counters.add(minutes)
    counters.add(minutes)
    counters.add(minutes)
    assert len(counters.places) == MOST_KINDS + 1
    assert sum(counts.published for counts in counters.places.values()) == MOST_KINDS + 100
    assert counters.places["q", OTHER].published == 100


def test_a_frozen_database_is_answered_in_time() -> None:
    with EmbeddedPostgres(version=18, settings=SETTINGS) as server:
        url = server.create_database("frozen")
        with Queue(url) as queue:
            queue.install()
            queue.publish(1)
            exporter = Exporter(queue, max_age=0, timeout=1)
            assert scraped(exporter)("laneway_up") == 1
            with frozen(server):
                for _ in range(3):
                    begun = time.monotonic()
                    found = scraped(exporter)
                    assert time.monotonic() - begun < 4
                    assert found("laneway_up") == 0
                    assert found("laneway_messages", queue="default", state="waiting") == 1
                age = found("laneway_snapshot_age_seconds")
                assert age is not None and age > 1
            deadline = time.monotonic() + 20
            while scraped(exporter)("laneway_up") != 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_a_viewer_may_export(server: EmbeddedPostgres) -> None:
    url = server.create_database("viewer exports")
    with Queue(url) as queue:
        queue.install()
        queue.install_roles()
        queue.publish(1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role scraper login in role laneway_viewer")
    try:
        address = looking_url(url.replace("//postgres@", "//scraper@"), False, 5)
        assert "scraper" in address and "read_only" in address
        with Queue(address, upkeep_every=None) as queue:
            found = scraped(Exporter(queue))
            assert found("laneway_up") == 1
            assert found("laneway_messages", queue="default", state="waiting") == 1
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("drop role scraper")


def test_the_command_serves_and_ends(queue: Queue, tmp_path: Path) -> None:
    queue.publish(1)
    command = [sys.executable, "-m", "laneway.cli", "exporter", "--port", "0", "--json"]
    with subprocess.Popen(
        [*command, "--url", f"sqlite:///{tmp_path}/queue.db"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://[\d.:]+", line)
        assert address, line
        assert address[0].startswith("http://127.0.0.1:"), "the loopback, unless one says otherwise"
        with urllib.request.urlopen(f"{address[0]}/metrics", timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            found = Scraped(answer.read().decode())
        assert found("laneway_messages", queue="default", state="waiting") == 1
        with urllib.request.urlopen(f"{address[0]}/readyz", timeout=20) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address[0]}/", timeout=20)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert process.returncode == 0
