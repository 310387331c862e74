"""The processes of a run: started, replaced when they die, and gone at its end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from .child import HANDED_OVER
from .stage import Stage

ROLES = {
    "producer-1": "producer",
    "producer-2": "producer",
    "worker-1": "laborer",
    "worker-2": "laborer",
    "hand-1": "hand",
    "hand-2": "hand",
    "meddler-1": "meddler",
}
CONSUMERS = ("worker-1", "worker-2", "hand-1", "hand-2")
SKEWED = {"worker-2": 86_400.0, "hand-2": -86_400.0}

STARTING = 30.0

Route = Callable[[str], str]


class Crew:
    """``route`` answers the URL for a process. Every life of a role has a name of its own."""

    def __init__(self, stage: Stage, route: Route) -> None:
        self._stage = stage
        self._route = route
        self._lives: dict[str, int] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._retired: set[str] = set()
        self._ended: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        for role in ROLES:
            self._start(role)

    def wait_until_begun(self) -> None:
        """Until each has written its first line: on a busy machine a start takes seconds."""
        deadline = time.monotonic() + STARTING
        while time.monotonic() < deadline:
            files = (Path(self._stage.folder) / f"{self.name(role)}.jsonl" for role in ROLES)
            if all(file.exists() for file in files):
                return
            time.sleep(0.05)

    def name(self, role: str) -> str:
        return f"{role}.{self._lives[role]}"

    def is_alive(self, role: str) -> bool:
        return self._processes[role].poll() is None

    def replace_dead(self) -> None:
        for role, process in list(self._processes.items()):
            if process.poll() is not None and role not in self._retired:
                _end_group(process)  # what it had started goes with it
                self._start(role)

    def signal(self, role: str, number: signal.Signals, group: bool = False) -> None:
        process = self._processes[role]
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(process.pid, number)

    def retire(self, roles: list[str], patience: float) -> None:
        """They are asked to stop, and are not replaced."""
        self._retired |= set(roles)
        for role in roles:
            self.signal(role, signal.SIGTERM)
        for role in roles:
            with suppress(subprocess.TimeoutExpired):
                self._processes[role].wait(patience)

    def _start(self, role: str) -> None:
        self._lives[role] = self._lives.get(role, 0) + 1
        name = self.name(role)
        stage = replace(self._stage, name=name, url=self._route(name), skew=SKEWED.get(role, 0.0))
        # A session of its own, so that a signal can reach all it has started, and only that.
        command = [sys.executable, "-m", f"penstock.chaos.{ROLES[role]}"]
        with open(Path(stage.folder) / "errors.txt", "ab") as errors:
            self._processes[role] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, HANDED_OVER: stage.text()},
            )
        self._ended.append(self._processes[role])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._ended:
            _end_group(process)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
