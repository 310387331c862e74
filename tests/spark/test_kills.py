"""Drivers and their JVMs killed with -9 at every point: nothing is lost, nothing comes twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from laneway import Queue
from tests.place import Place
from tests.spark.apps.marks import TABLE
from tests.spark.conftest import LONG
from tests.spark.handled import do, look
from tests.spark.running import APPS
from tests.spark.standalone import two_hosts

_ALL = 100
_BATCH = 25  # as in claims_to_table.py


def started(app: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(APPS.parent.parent.parent)}
    return subprocess.Popen(
        [sys.executable, str(APPS / app), *map(str, arguments)],
        env=environment,
        start_new_session=True,
    )


def kill_when(reached: Callable[[], bool], running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    try:
        while not reached():
            assert running.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)  # what is watched needs the processor
    finally:
        _kill(running)


def ended(running: subprocess.Popen[bytes]) -> int:
    """Its exit code; nothing of it is left, whatever happens."""
    try:
        return running.wait(400)
    finally:
        _kill(running)


def _kill(running: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def begin(place: Place) -> None:
    do(place, TABLE)
    do(place, "create table if not exists public.sunk (batch bigint, id bigint)")
    do(place, "truncate public.mark, public.sunk")


def marked(place: Place, like: str) -> bool:
    return bool(look(place, f"select count(*) from public.mark where place like '{like}'")[0][0])  # noqa: S608


@LONG
def test_a_claim_stream_killed_at_every_point(queue: Queue, place: Place, tmp_path: Path) -> None:
    queue.publish_many([b"x"] * _ALL)
    begin(place)
    points: dict[str, Callable[[], bool]] = {
        "after the claim": lambda: look(place, "select count(*) from stream_item") != [(0,)],
        "inside read": lambda: marked(place, "reading"),
        "after the sink's commit": lambda: marked(place, "sunk"),
        "before completion": lambda: (tmp_path / "commits" / "0").exists(),
    }
    for reached in points.values():
        do(place, "truncate public.mark")
        kill_when(reached, started("claims_to_table.py", place.url, place.schema, tmp_path))
    assert ended(started("claims_to_table.py", place.url, place.schema, tmp_path)) == 0
    assert look(place, "select count(*), count(distinct id) from public.sunk") == [(_ALL, _ALL)]
    # The first kill may come before Spark has noted anything: its batch goes back to the channels.
    ends = "select outcome, count(*), count(distinct message_id) from history where {} group by 1"
    assert look(place, ends.format("terminal")) == [("completed", _ALL, _ALL)]
    assert look(place, ends.format("not terminal")) in ([], [("given_back", _BATCH, _BATCH)])
    assert look(place, "select count(*) from message") == [(0,)]
    assert look(place, "select count(*) from lease") == [(0,)]


@LONG
def test_a_bulk_publish_killed_in_every_phase(queue: Queue, place: Place) -> None:
    """All of it or nothing is there after each kill, and what the dead driver had loaded goes away
    as soon as its keeper has noticed."""
    begin(place)
    app = ("publish_slowly.py", place.url, place.schema, "local[2]")
    writing = (
        "select 1 from pg_locks where relation = 'message'::regclass and mode ~ 'RowExclusive'"
    )
    waiting = "select 1 from pg_locks where relation = 'wake'::regclass and not granted"
    phases: dict[str, Callable[[], bool]] = {
        "opened": lambda: look(place, "select 1 from staged") != [],
        "loading": lambda: look(place, writing) != [],
        "a part is loaded": lambda: look(place, "select 1 from staged_part") != [],
        "all parts are loaded": lambda: look(place, "select count(*) from message") == [(400,)],
    }
    for reached in phases.values():
        kill_when(reached, started(*app))
        assert look(place, "select 1 from message_v1") == []
        swept(place)
        assert look(place, "select 1 from message") == []
    with psycopg.connect(place.url) as blocker:
        blocker.execute(
            sql.SQL("lock table {}.wake in share mode").format(sql.Identifier(place.schema))
        )
        kill_when(lambda: look(place, waiting) != [], started(*app))
        assert look(place, "select 1 from message_v1") == []
    # The server does not know yet that nobody waits for its answer: the whole frame is published.
    wait(lambda: look(place, "select count(*) from message_v1") == [(400,)])
    assert ended(started(*app)) == 0
    assert look(place, "select count(*), count(distinct payload) from message") == [(400, 400)]
    swept(place)
    assert len(list(queue.claim(500))) == 400


def swept(place: Place) -> None:
    """Until nothing of a job is left that nobody holds."""

    def clean() -> bool:
        look(place, "select sweep_staged_v1(1000, '0')")
        return not any(look(place, f"select from {table}") for table in ("staged", "staged_part"))

    wait(clean)


def wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@LONG
def test_speculative_tasks_publish_nothing_twice(
    queue: Queue, place: Place, tmp_path: Path
) -> None:
    """On a cluster of processes, with a task that is slow enough to be tried twice."""
    begin(place)
    with two_hosts(tmp_path) as master:
        app = ("publish_slowly.py", place.url, place.schema, master)
        assert ended(started(*app)) == 0
    assert marked(place, "task 0 attempt 0") and marked(place, "task 0 attempt 1")
    assert look(place, "select count(*), count(distinct payload) from message") == [(400, 400)]
    assert look(place, "select count(*) from staged") == [(0,)]
