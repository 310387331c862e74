"""Debian's chromium, installed if that is possible, and a server to point it at."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from laneway.dev.embedded import free_port
from laneway.dev.embedded.mariadb import packages_lock

NO_CHROMIUM = (
    "THE DASHBOARD IS NOT TESTED IN A BROWSER: no chromium here, and it could not be installed "
    "(needs root and the Debian package chromium)"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """The program; installs the Debian package as root if it is not there."""
    found = shutil.which("chromium")
    if found or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return found
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    with packages_lock():
        for attempt in (command, ["apt-get", "update", "-qq"], command):
            if shutil.which("chromium"):
                break
            subprocess.run(attempt, env=quiet, capture_output=True, check=False)
    return shutil.which("chromium")


@contextmanager
def serving(app: Any, port: int | None = None) -> Iterator[str]:
    """The address of an ASGI application on a thread of its own."""
    chosen = port or free_port()
    config = uvicorn.Config(
        app, port=chosen, log_level="error", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{chosen}"
    finally:
        server.should_exit = True
        thread.join(10)


def mounted(**apps: Any) -> Starlette:
    """Each under its name, with one more level: name/of/it."""
    return Starlette(routes=[Mount(f"/{name}/of/it", app=app) for name, app in apps.items()])
