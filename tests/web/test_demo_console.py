"""``laneway dashboard --demo``: a server, tenants and workers, with something for every page."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from laneway import Queue
from laneway.dev.demo.console import prepare
from laneway.dev.demo.console_jobs import make_worker
from laneway.dev.embedded import free_port
from laneway.web import Dashboard
from laneway.web.pages import PAGES
from laneway.web.request import WebRequest

_LONGEST = 120.0  # seconds


def test_every_page_of_the_demo(tmp_path: Path) -> None:
    """What it publishes at first, on SQLite; only the queue that nobody serves has other kinds."""
    url = f"sqlite:///{tmp_path / 'demo.db'}"
    with Queue(url, upkeep_every=None) as queue:
        queue.install()
        prepare(queue)
        kinds = {
            node.kind
            for one in queue.flows.list()
            for node in queue.flows.nodes(one.id, limit=9000)
        }
        kinds |= {message.kind for message in queue.messages(queue="default", limit=10_000)}
        handled = set(make_worker(url, "worker").kinds)
        assert kinds == handled - {"webhook"}
        pages = Dashboard(queue, trust_local=True)
        for path in (*PAGES, "/flows/1", "/flows/2", "/messages/1"):
            query = {"/channel": "channel=acme", "/dead-letters/bulk": "action=redrive"}.get(path)
            headers = {"host": "localhost"}
            answer = pages.respond(WebRequest("GET", path, query or "", headers, b"", "127.0.0.1"))
            assert answer.status == 200, path
        pages.close()


def _ask(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
        body = answer.read()
    return json.loads(body)["data"] if path.startswith("api/") else body


def _until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + _LONGEST
    while time.monotonic() < end:
        try:
            if found():
                return
        except OSError:
            pass  # it does not listen yet
        time.sleep(0.2)
    raise AssertionError("it never came")


@pytest.mark.repeats("starts a server and two workers; its pages are tested here")
@pytest.mark.timeout(400)
def test_the_demo_works_until_it_is_stopped() -> None:
    port = free_port()
    command = [sys.executable, "-m", "laneway.cli", "dashboard", "--demo", "--port", str(port)]
    command += ["--trust-local"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: len(_ask(port, "api/v1/workers")) == 2)
        _until(lambda: _ask(port, "api/v1/flows?state=dead") != [])
        _until(
            lambda: b"stands still" in _ask(port, "") and b"no worker serves it" in _ask(port, "")
        )
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []
    finally:
        process.kill()
        process.wait()
