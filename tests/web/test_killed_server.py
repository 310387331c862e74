"""A bulk redrive that was started in the dashboard, whose server is killed while it works on it."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from laneway import Queue
from tests.stores import Databases

LETTERS = 100_000
LONGEST = 240.0  # seconds

_FILL = """
insert into laneway.dead (id, died_at, published_at, first_published_at, attempt, max_attempts,
    priority, queue, channel, kind, content_type, reason, error_type, error, payload)
select nextval('laneway.message_id'), now() - interval '1 hour' + n * interval '1 microsecond',
    now() - interval '2 hours', now() - interval '2 hours', 20, 20, 0, 'orders',
    'tenant-' || n % 100, 'mail', 'application/json', 'max_attempts', 'ValueError', 'no', '1'
from generate_series(1, {letters}) n;
insert into laneway.dead_total (queue, channel, n)
select d.queue, d.channel, count(*) from laneway.dead d group by d.queue, d.channel;
"""
_RESULT = """
select (select count(*) from laneway.dead), (select count(*) from laneway.message),
    (select count(*) from laneway.history where outcome = 'redriven'),
    (select count(distinct message_id) from laneway.history where outcome = 'redriven')
"""


@contextmanager
def _dashboard(url: str, port: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "laneway.cli", "dashboard", "--port", str(port), "--url", url]
    command += ["--trust-local"]
    with log.open("ab") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _call(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    """Waits for the server to listen."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/{path}",
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json"},
    )

    def answer() -> Any:
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)["data"]
        except ConnectionError:
            return None
        except urllib.error.URLError as error:
            assert isinstance(error.reason, ConnectionError), error
            return None

    return _until(answer)


def _until(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LONGEST
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.timeout(600)
@pytest.mark.repeats("a hundred thousand letters; tests of operations have few")
def test_a_redrive_ends_exactly_after_its_server_was_killed(
    server: Databases, tmp_path: Path
) -> None:
    url = server.create_database("laneway_killed_dashboard")
    port, log = _free_port(), tmp_path / "log"
    with Queue(url, upkeep_every=None) as queue, psycopg.connect(url, autocommit=True) as observer:
        queue.install()
        observer.execute(_FILL.format(letters=LETTERS).encode())
        with _dashboard(url, port, log) as process:
            started = _call(port, "operations/redrive", {"queue": "orders", "expected": LETTERS})
            _until(lambda: queue.operations.get(started["id"]).done)
            process.send_signal(signal.SIGKILL)
            process.wait()
        left = queue.operations.get(started["id"])
        assert left.state == "running" and 0 < left.done < LETTERS, left
        with _dashboard(url, port, log):
            _until(lambda: queue.operations.get(started["id"]).state != "running")
            shown = _call(port, f"operations/{started['id']}")
        assert (shown["state"], shown["done"], shown["total"]) == ("done", LETTERS, LETTERS)
        found = observer.execute(_RESULT).fetchone()
        assert found == (0, LETTERS, LETTERS, LETTERS)
        (entry,) = queue.audit()
        assert (entry.action, entry.affected) == ("start_redrive", LETTERS)
