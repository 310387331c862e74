"""The example of FastAPI, async SQLAlchemy, asyncpg and Alembic, as its page walks through it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.errors import SchemaMissing

ROOT = Path(__file__).parent.parent
SHOP = ROOT / "examples" / "fastapi_shop"
PAGE = ROOT / "docs" / "how-to" / "fastapi.md"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def url(server: EmbeddedPostgres) -> str:
    made = server.create_database(f"fastapi_shop_test_{time.monotonic_ns()}")
    return made.replace("postgresql:", "postgresql+asyncpg:")


def _process(url: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(SHOP)},
        cwd=SHOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(url: str, *words: str) -> str:
    done = _process(url, *words)
    out, errors = done.communicate(timeout=300)
    assert done.returncode == 0, out + errors
    return out


def test_its_own_tests_pass(url: str) -> None:
    assert "5 passed" in _run(url, "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.repeats("mypy's own start, of code that rarely changes; a minute")
def test_its_types_are_strict(url: str, tmp_path: Path) -> None:
    options = ("--strict", "--config-file=", f"--cache-dir={tmp_path}", "--ignore-missing-imports")
    told = _run(url, "mypy", *options, "-p", "shop", "-p", "migrations", "-p", "tests")
    assert "no issues found" in told


def test_migrations_go_up_and_down_and_autogenerate_proposes_nothing(url: str) -> None:
    assert _run(url, "alembic", "upgrade", "head") == ""
    assert _run(url, "alembic", "check") == "No new upgrade operations detected.\n"
    assert 'create table "laneway".message' in _run(url, "alembic", "upgrade", "head", "--sql")
    _run(url, "alembic", "downgrade", "base")
    with Queue(url) as queue, pytest.raises(SchemaMissing):
        queue.schema_version()


def test_an_order_goes_from_the_request_through_the_worker_to_the_answer(url: str) -> None:
    _run(url, "alembic", "upgrade", "head")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = _process(url, "uvicorn", "shop.api:app", "--port", str(port))
    worker = _process(url, "laneway.cli", "worker", "shop.tasks")
    shop = f"http://127.0.0.1:{port}"
    try:
        _until(lambda: _ask(f"{shop}/openapi.json"))
        assert _ask(f"{shop}/tenants/acme/limit", "PUT", {"concurrency": 1}) is None
        placed = _ask(f"{shop}/tenants/acme/orders", "POST", {"cents": 4200})
        invoice = _until(lambda: _ask(f"{shop}/messages/{placed['message']}/invoice?wait=5"))
        assert invoice == {"order": 1, "number": "acme-1", "cents": 4200}
        for process in (worker, server):
            process.send_signal(signal.SIGTERM)
        told = [process.communicate(timeout=60)[1] for process in (worker, server)]
    finally:
        for process in (worker, server):
            process.kill()
            process.wait()
    assert "Traceback" not in "".join(told)
    with Queue(url) as queue:
        assert [entry.outcome for entry in queue.history(placed["message"])] == ["completed"]
        policy = queue.channel("acme").policy()
        assert policy is not None and policy.concurrency == 1


def _ask(address: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address, data, {"content-type": "application/json"}, method=method
    )
    with suppress(OSError), urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _until(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 120
    while not (found := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_the_page_shows_the_files_as_they_are() -> None:
    shown = dict(re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    assert len(shown) > 8
    for name, text in shown.items():
        assert (SHOP / name).read_text() == text, name
    files = (file for file in SHOP.rglob("*.*") if file.suffix in (".py", ".ini"))
    there = {str(file.relative_to(SHOP)) for file in files}
    assert there - set(shown) <= {"shop/__init__.py"}
