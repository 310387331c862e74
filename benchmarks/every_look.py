"""Every page, API call and command that only looks: what does it cost the database when everything
waits? One table for PostgreSQL, MariaDB and SQLite, each look against 50 ms of database time.

Database time is time on a processor: on a busy machine the elapsed time says little.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol
from unittest.mock import patch

import psycopg

from laneway import Queue
from laneway.cli.app import app
from laneway.client.sync.database import Database
from laneway.dev.embedded import EmbeddedMariaDB, EmbeddedPostgres, install_mariadb
from laneway.drivers.runner import drive
from laneway.drivers.sqlite.runner import execute
from laneway.drivers.sqlite.url import connect, read_url
from laneway.engines.postgresql.schema import install_sql
from laneway.plan import Plan
from laneway.web.api import api_routes
from laneway.web.cache import SharedCache
from laneway.web.dashboard import Dashboard
from laneway.web.request import WebRequest

from . import looks, looks_mariadb, sqlite_looks
from .report import Table, show

LEAST_MS = 50.0
_ROUNDS = 9
_SMALL = 200  # nodes of the other flows
_ONE = "tenant-0000777"
_QUEUES = {"PostgreSQL": "orders", "MariaDB": "orders", "SQLite": "default"}
_CHANNELS = {"PostgreSQL": _ONE, "MariaDB": _ONE, "SQLite": "channel 77"}
# What an address of the API needs beside its defaults.
_NEEDED = {
    "channel": "channel={channel}&queue={queue}",
    "count_dead_letters": "queue={queue}&error_type=Rare",
    "preview": "queue={queue}&error_type=Rare",
    "dead_letters": "queue={queue}&reason=rare",
    "messages": "kind=none",
    "schedule": None,
    "operation": None,
}
_COMMANDS = (
    "stats",
    "top --once",
    "channels list",
    "channels list --queue {queue}",
    "messages --kind none",
    "show {message}",
    "dead list",
    "dead list --reason rare",
    "dead list --channel {channel}",
    "dead groups",
    "dead redrive --error-type Rare --dry-run",
    "workers",
    "limits",
    "audit",
    "doctor",
    "flows",
    "flows list --state completed",
    "flows show {flow}",
)
_PAGES = (
    "/",
    "/queue?name={queue}",
    "/channels",
    "/channels?queue={queue}&prefix={prefix}",
    "/channels?paused=true",
    "/channel?queue={queue}&channel={channel}",
    "/messages",
    "/messages?kind=none",
    "/messages?channel={channel}&queue={queue}",
    "/messages?state=dead&kind=none",
    "/messages/{message}",
    "/dead-letters",
    "/dead-letters?queue={queue}",
    "/dead-letters?reason=rare",
    "/dead-letters?queue={queue}&channel={channel}",
    "/dead-letters?queue={queue}&error_type=Rare",
    "/dead-letters/bulk?action=redrive&queue={queue}",
    "/dead-letters/bulk?action=redrive&queue={queue}&error_type=Rare",
    "/flows",
    "/flows?state=completed",
    "/flows/{flow}",
    "/flows/{flow}?from={node}&after={node}",
    "/messages/{node}",
    "/messages/{last_node}",
    "/schedules",
    "/topics",
    "/limits",
    "/workers",
    "/system",
    "/audit",
)


class Cost(NamedTuple):
    """Elapsed milliseconds, those on a processor, and how much was read, in the database's unit."""

    elapsed: float
    busy: float
    read: int


class Meter(Protocol):
    """Runs a plan on a connection of its own and adds up what it costs."""

    unit: str

    def start(self) -> None: ...

    def run(self, plan: Plan[Any]) -> Any: ...

    def cost(self) -> Cost: ...


class PostgresMeter:
    unit = "buffers"

    def __init__(self, url: str) -> None:
        self._explained = looks.Explained(url)
        self._total = Cost(0, 0, 0)

    def start(self) -> None:
        self._total = Cost(0, 0, 0)

    def run(self, plan: Plan[Any]) -> Any:
        answer = self._explained.run(plan)
        one = self._explained
        total = self._total
        self._total = Cost(
            total.elapsed + one.milliseconds, total.busy + one.busy, total.read + one.pages
        )
        return answer

    def cost(self) -> Cost:
        return self._total


class MariaMeter:
    unit = "rows"

    def __init__(self, url: str, server: int) -> None:
        self._watched = looks_mariadb.Watched(url, server)
        self._total = Cost(0, 0, 0)

    def start(self) -> None:
        self._total = Cost(0, 0, 0)

    def run(self, plan: Plan[Any]) -> Any:
        answer = self._watched.run(plan)
        one, total = self._watched, self._total
        self._total = Cost(
            total.elapsed + one.milliseconds, total.busy + one.busy, total.read + one.rows
        )
        return answer

    def cost(self) -> Cost:
        return self._total


class SqliteMeter:
    unit = "steps"
    _EVERY = 10

    def __init__(self, url: str) -> None:
        self._connection = connect(read_url(url))
        self._connection.set_progress_handler(self._step, self._EVERY)
        self._elapsed, self._busy, self._steps = 0.0, 0.0, 0

    def start(self) -> None:
        self._elapsed, self._busy, self._steps = 0.0, 0.0, 0

    def run(self, plan: Plan[Any]) -> Any:
        return drive(plan, self._timed)

    def cost(self) -> Cost:
        return Cost(self._elapsed, self._busy, self._steps * self._EVERY)

    def _timed(self, statement: Any) -> Any:
        began, busy = time.perf_counter(), time.thread_time()
        rows = execute(self._connection, statement)
        self._busy += (time.thread_time() - busy) * 1_000
        self._elapsed += (time.perf_counter() - began) * 1_000
        return rows

    def _step(self) -> int:
        self._steps += 1
        return 0


def fill_flows(url: str, nodes: int) -> dict[str, Any]:
    """A tenth of them in one flow, whose last node comes after all others; a few of it are dead.
    What the looks need to know of it; nothing where a database has no flows."""
    size = max(300, nodes // 10)
    with Queue(url, name="flows", upkeep_every=None) as queue:
        if "flows" in queue.database.engine.lacks:
            return {}
        with queue.flow("large") as large:
            pages = [large.add(n, kind="page", max_attempts=1) for n in range(size - 1)]
            last = large.add(0, kind="merge", after=pages)
        for message in queue.claim(limit=20):
            message.fail("no")
        for number in range((nodes - size) // _SMALL):
            with queue.flow(f"small {number}") as flow:
                flow.add(0, after=[flow.add(n) for n in range(_SMALL - 1)])
    return {"flow": large.id, "node": pages[0].id, "last_node": last.id}


def every_look(dashboard: Dashboard, url: str, words: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Its name, and a function that looks."""
    for page in _PAGES:
        if not _has(page, words):
            continue
        path, _, query = page.format(**words).partition("?")
        yield f"page {page}", _asking(dashboard, path, query)
    for route in api_routes():
        needed = _NEEDED.get(route.verb, "")
        if route.method != "GET" or needed is None or not _has(route.path, words):
            continue
        path = "/api/v1/" + route.path.replace("{message_id}", str(words["message"]))
        path = path.replace("{flow_id}", str(words.get("flow")))
        yield f"api {route.path} {needed}".strip(), _asking(dashboard, path, needed.format(**words))
    for command in _COMMANDS:
        if not _has(command, words):
            continue
        yield (
            f"laneway {command}",
            _commanding(url, [word.format(**words) for word in command.split()]),
        )


def _has(look: str, words: dict[str, Any]) -> bool:
    """Whether the database has what is looked at."""
    return "flow" in words or not ("flows" in look or "node}" in look)


def _asking(dashboard: Dashboard, path: str, query: str) -> Callable[[], None]:
    def ask() -> None:
        answer = dashboard.respond(WebRequest("GET", path, query, client="127.0.0.1"))
        if answer.status not in (200, 303):
            raise RuntimeError(f"{path}?{query}: {answer.status} {answer.body[-300:]!r}")

    return ask


def _commanding(url: str, words: Sequence[str]) -> Callable[[], None]:
    def command() -> None:
        kept = StringIO()
        with redirect_stdout(kept), redirect_stderr(kept):
            try:
                app([*words, "--url", url], standalone_mode=False)
            except SystemExit as end:
                if end.code not in (0, 1, 3, None):
                    raise RuntimeError(f"{words}: {kept.getvalue()}") from None

    return command


def measure(name: str, url: str, meter: Meter, message: int, table: Table, nodes: int = 300) -> int:
    """Adds a row for every look; returns how many are above the limit."""
    words = fill_flows(url, nodes) | {
        "queue": _QUEUES[name],
        "channel": _CHANNELS[name],
        "message": message,
    }
    words["prefix"] = _CHANNELS[name][:-1]
    slow = 0
    looking, unmeasured = threading.current_thread(), Database.run

    def run(
        database: Database, plan: Plan[Any], connection: object = None, *, atomic: bool = False
    ) -> Any:
        if threading.current_thread() is not looking:  # the dashboard's own threads
            return unmeasured(database, plan, connection, atomic=atomic)
        return meter.run(plan)

    with Queue(url, upkeep_every=None) as queue, patch.object(Database, "run", run):
        dashboard = Dashboard(queue, insecure=True)
        dashboard.cache = SharedCache(keep=0)
        with closing(dashboard):
            for look_name, look in every_look(dashboard, url, words):
                rounds = []
                for _ in range(_ROUNDS):
                    meter.start()
                    look()
                    rounds.append(meter.cost())
                elapsed, busy = (median(one[n] for one in rounds) for n in (0, 1))
                fine = busy < LEAST_MS
                slow += not fine
                read = f"{int(median(one.read for one in rounds)):,} {meter.unit}"
                verdict = "pass" if fine else "FAIL"
                table.add(look_name, round(elapsed, 1), round(busy, 1), read, verdict)
    return slow


@contextmanager
def postgresql(size: looks.Waiting) -> Iterator[tuple[str, Meter]]:
    settings = {"shared_buffers": "2GB", "max_wal_size": "8GB"}
    with EmbeddedPostgres(version=18, settings=settings) as server:
        url = server.create_database("looks")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(install_sql().encode())
            connection.execute("set synchronous_commit = off")
            looks.fill(connection, size)
        yield url, PostgresMeter(url)


@contextmanager
def mariadb(size: looks_mariadb.Waiting) -> Iterator[tuple[str, Meter]]:
    install_mariadb()
    with EmbeddedMariaDB(settings=looks_mariadb.SETTINGS) as server:
        url = server.create_database("looks")
        with Queue(url, upkeep_every=None) as queue:
            queue.install()
        looks_mariadb.fill(url, size)
        yield url, MariaMeter(url, server.pid)


@contextmanager
def sqlite(messages: int, channels: int, dead: int) -> Iterator[tuple[str, Meter]]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/looks.db?synchronous=normal"
        sqlite_looks.fill(url, messages, channels)
        sqlite_looks.fill_dead(url, dead, channels)
        yield url, SqliteMeter(url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--messages", type=int, default=10_000_000, help="a tenth elsewhere, and of nodes of flows"
    )
    parser.add_argument("--channels", type=int, default=1_000_000, help="and unread wakes")
    parser.add_argument("--dead", type=int, default=1_000_000)
    parser.add_argument("--databases", default="postgresql,mariadb,sqlite")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    os.environ.pop("DATABASE_URL", None)
    tenth = (max(2000, o.messages // 10), max(1000, o.channels // 10), max(500, o.dead // 10))
    leases = min(20_000, tenth[0] // 10)
    made: dict[str, Callable[[], Any]] = {
        "PostgreSQL": lambda: postgresql(looks.Waiting(o.messages, o.channels, o.dead, leases)),
        "MariaDB": lambda: mariadb(looks_mariadb.Waiting(*tenth, leases)),
        "SQLite": lambda: sqlite(*tenth),
    }
    columns = ("look", "ms", "ms of database time", "read", "below 50 ms")
    any_slow = False
    for name, opened in made.items():
        if name.lower() not in o.databases.lower().split(","):
            continue
        began = time.monotonic()
        with opened() as (url, meter):
            print(f"{name} is filled: {time.monotonic() - began:,.0f} s", file=sys.stderr)
            messages = o.messages if name == "PostgreSQL" else tenth[0]
            table = Table(f"{name}: every look, with {messages:,} messages", columns)
            slow = measure(name, url, meter, 777, table, messages // 10)
        table.notes.append(f"{len(table.rows)} looks, {slow} above {LEAST_MS:.0f} ms")
        show([table], as_json=o.json)
        any_slow = any_slow or slow > 0
    sys.exit(1 if any_slow else 0)


if __name__ == "__main__":
    main()
