"""Pictures for the docs: ``python scripts/screenshots.py [--seconds N] [console terminal report]``.

Starts the demo, lets it work for a while, and photographs the console and commands in a terminal
with Debian's chromium; then a report over a made-up history, which needs Spark.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text

from laneway import Queue
from laneway.dev.demo.console import queue_in_use
from laneway.dev.demo.tenants import SCHEMA
from laneway.dev.embedded import EmbeddedPostgres, free_port
from laneway.web import dashboard

FOLDER = Path(__file__).parent.parent / "docs/pictures"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
PARTS = ("console", "terminal", "report")
# Name, address, width, height, scheme.
PAGES = (
    ("overview", "", 1280, 900, "light"),
    ("queue", "queue?name=default", 1280, 900, "dark"),
    ("dead-letters", "dead-letters", 1280, 640, "light"),
    ("limits", "limits", 1280, 420, "light"),
    ("flow", "flows/1", 1280, 900, "light"),
    ("phone", "", 390, 780, "dark"),
)
# Name, arguments of the command.
COMMANDS = (
    ("terminal-top", ("top", "--once")),
    ("terminal-doctor", ("doctor",)),
)
COLUMNS = 120  # of the terminal
REPORT_MESSAGES = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=120, help="how long the demo works first")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    parts = given.parts or PARTS
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        if "console" in parts or "terminal" in parts:
            take_demo(browser, parts, given.seconds)
        if "report" in parts:
            take_report(browser)
        browser.close()


def take_demo(browser: Browser, parts: Sequence[str], seconds: float) -> None:
    with EmbeddedPostgres() as server:
        url = server.create_database("demo")
        with queue_in_use(url) as queue:
            print(f"working for {seconds:.0f} s ...", flush=True)
            time.sleep(seconds)
            if "console" in parts:
                take_console(browser, queue)
            if "terminal" in parts:
                take_terminal(browser, url)


def take_console(browser: Browser, queue: Queue) -> None:
    with _served(queue) as base:
        for name, path, width, height, scheme in PAGES:
            # The shares of a queue need a few looks.
            take(browser, name, base + path, width, height, scheme, settle=6000)


@contextmanager
def _served(queue: Queue) -> Iterator[str]:
    port = free_port()
    config = uvicorn.Config(
        dashboard(queue, trust_local=True),
        port=port,
        log_level="error",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(10)


def take_terminal(browser: Browser, url: str) -> None:
    for name, arguments in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "terminal.html"
            page.write_text(_terminal(url, arguments), encoding="utf-8")
            take(browser, name, page.as_uri(), 1100, 200, "dark", whole=True)


def _terminal(url: str, arguments: tuple[str, ...]) -> str:
    """A page that shows the command and what it printed, in its colours."""
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "LANEWAY_SCHEMA": SCHEMA,
        "FORCE_COLOR": "1",
        "COLUMNS": str(COLUMNS),
    }
    command = [sys.executable, "-m", "laneway.cli", *arguments]
    # Not checked: doctor exits with 1 when it finds something, and here it does.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ laneway {' '.join(arguments)}\n{done.stdout}"))
    return console.export_html(
        code_format="<meta charset=utf-8><style>{stylesheet} body {{ background: #16181d;"
        " color: #e6e6e6; margin: 16px; }} pre {{ font: 14px/1.35 monospace; margin: 0; }}"
        "</style><pre>{code}</pre>"
    )


def take_report(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as lake:
        for arguments in (("synth", "--messages", str(REPORT_MESSAGES)), ("report",)):
            command = [sys.executable, "-m", "laneway.cli", "lake", *arguments, "--lake", lake]
            subprocess.run(command, check=True)
        (page,) = Path(lake).rglob("*.html")
        take(browser, "report", page.as_uri(), 1280, 900, "light", settle=3000)


def take(
    browser: Browser,
    name: str,
    address: str,
    width: int,
    height: int,
    scheme: str,
    *,
    settle: int = 500,
    whole: bool = False,
) -> None:
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    page.wait_for_timeout(settle)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file, full_page=whole)
    print(file.name, file.stat().st_size, "bytes", flush=True)
    context.close()


if __name__ == "__main__":
    main()
