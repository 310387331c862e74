"""worker --reload: restarts the worker process when a .py file below the current folder changes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from laneway.worker.run.shutdown import stop_signals

from .output import say

PARENT = "LANEWAY_RELOAD_PARENT"

_POLL = 0.5  # seconds

Files = dict[str, tuple[int, int]]


def run_with_reload(words: list[str]) -> int:
    """Runs ``laneway`` with these words, again after every change; returns the exit code.

    The worker is stopped as by SIGTERM: running handlers finish, and messages that were not started
    are given back. A worker that ended by itself, for instance by a syntax error, is started again
    at the next change.
    """
    reloader = _Reloader(words)
    for number in stop_signals():
        signal.signal(number, reloader.on_signal)
    return reloader.run()


class _Reloader:
    def __init__(self, words: list[str]) -> None:
        self._command = [sys.executable, "-m", "laneway.cli", *words]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> int:
        while True:
            seen = python_files(Path.cwd())
            process = self._start()
            changed = self._wait(process, seen)
            if changed is None:
                return process.wait()
            say(f"{changed} changed: restarting the worker.")
            self._signal(signal.SIGTERM)
            process.wait()
            if self._stopping:
                return process.returncode

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Passed on to the worker, which stops gracefully, and at once after a second signal."""
        self._stopping = True
        self._signal(signal.Signals(number))

    def _start(self) -> subprocess.Popen[bytes]:
        # In a session of its own, or Ctrl-C would reach it twice: from the terminal and from us.
        # No .pyc files: two edits within a second can leave an old one that looks current.
        environment = {PARENT: str(os.getpid()), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            self._command, env={**os.environ, **environment}, start_new_session=True
        )
        if self._stopping:  # the signal came while it was being started
            self._signal(signal.SIGTERM)
        return self._process

    def _wait(self, process: subprocess.Popen[bytes], seen: Files) -> str | None:
        """Until a file changes: its name. None if we are to stop and the worker has ended."""
        told = False
        while True:
            ended = process.poll() is not None
            if ended and self._stopping:
                return None
            if ended and not told:
                say(f"The worker exited with code {process.returncode}: waiting for a change.")
                told = True
            if not self._stopping and (changed := first_difference(seen, python_files(Path.cwd()))):
                return changed
            time.sleep(_POLL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def python_files(folder: Path) -> Files:
    """All .py files below, with time and size; not in hidden folders or virtual environments."""
    return dict(_walk(str(folder)))


def _walk(root: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for folder, folders, files in os.walk(root):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name[0] != "." and name != "node_modules"]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                try:
                    found = os.stat(path)
                except OSError:
                    continue  # removed meanwhile, or a broken link
                yield os.path.relpath(path, root), (found.st_mtime_ns, found.st_size)


def first_difference(before: Files, after: Files) -> str | None:
    """A file that is new, changed or gone."""
    return next(
        (name for name in sorted({*before, *after}) if before.get(name) != after.get(name)), None
    )


def stop_with_parent() -> None:
    """In a worker started by --reload: stops it when the process that watches files is gone."""
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_follow, args=(int(parent),), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
