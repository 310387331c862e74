"""Pictures of the dashboard for the docs: ``python scripts/screenshots.py [SECONDS]``.

Starts the demo, lets it work for a while (120 seconds by default), and photographs it with Debian's
chromium.
"""

import shutil
import sys
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from laneway.dev.demo.console import demo_queue
from laneway.dev.embedded import free_port
from laneway.web import dashboard

FOLDER = Path(__file__).parent.parent / "docs/pictures"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
# Name, address, width, height, scheme.
PICTURES = (
    ("overview", "", 1280, 900, "light"),
    ("queue", "queue?name=default", 1280, 900, "dark"),
    ("dead-letters", "dead-letters", 1280, 640, "light"),
    ("limits", "limits", 1280, 420, "light"),
    ("flow", "flows/1", 1280, 900, "light"),
    ("phone", "", 390, 780, "dark"),
)


def main(seconds: float) -> None:
    port = free_port()
    with demo_queue() as queue:
        pages = dashboard(queue)
        server = uvicorn.Server(
            uvicorn.Config(pages, port=port, log_level="error", timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        print(f"working for {seconds:.0f} s ...", flush=True)
        time.sleep(seconds)
        with sync_playwright() as playwright:
            program = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            for picture in PICTURES:
                take(browser, f"http://127.0.0.1:{port}/", *picture)
            browser.close()
        server.should_exit = True
        thread.join(10)


def take(
    browser: Browser, base: str, name: str, path: str, width: int, height: int, scheme: str
) -> None:
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(base + path)
    page.wait_for_timeout(6000)  # the shares of a queue need a few looks
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file)
    print(file.name, file.stat().st_size, "bytes", flush=True)
    context.close()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0)
