"""The processes of a run: started, replaced when they die, and ended with it."""

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

from .child import CONFIG_VARIABLE
from .config import RunConfig

ROLES = {
    "producer-1": "producer",
    "producer-2": "producer",
    "worker-1": "worker_process",
    "worker-2": "worker_process",
    "manual-1": "manual_consumer",
    "manual-2": "manual_consumer",
    "operator-1": "operator_process",
}
CONSUMERS = ("worker-1", "worker-2", "manual-1", "manual-2")
SKEWED = {"worker-2": 86_400.0, "manual-2": -86_400.0}

STARTING = 30.0

Route = Callable[[str], str]


class ProcessSet:
    """``route`` returns the URL for a process. Every restart of a role gets a name of its own."""

    def __init__(self, config: RunConfig, route: Route) -> None:
        self._config = config
        self._route = route
        self._incarnations: dict[str, int] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stopped: set[str] = set()
        self._ended: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        for role in ROLES:
            self._start(role)

    def wait_until_begun(self) -> None:
        """Until each has written its first line: on a busy machine that takes seconds."""
        deadline = time.monotonic() + STARTING
        while time.monotonic() < deadline:
            files = (Path(self._config.folder) / f"{self.name(role)}.jsonl" for role in ROLES)
            if all(file.exists() for file in files):
                return
            time.sleep(0.05)

    def name(self, role: str) -> str:
        return f"{role}.{self._incarnations[role]}"

    def is_alive(self, role: str) -> bool:
        return self._processes[role].poll() is None

    def replace_dead(self) -> None:
        for role, process in list(self._processes.items()):
            if process.poll() is not None and role not in self._stopped:
                _end_group(process)  # including what it had started
                self._start(role)

    def signal(self, role: str, number: signal.Signals, group: bool = False) -> None:
        process = self._processes[role]
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(process.pid, number)

    def stop(self, roles: list[str], timeout: float) -> None:
        """Asks them to stop, and does not replace them."""
        self._stopped |= set(roles)
        for role in roles:
            self.signal(role, signal.SIGTERM)
        for role in roles:
            with suppress(subprocess.TimeoutExpired):
                self._processes[role].wait(timeout)

    def end(self) -> None:
        """Kills whatever is left of them."""
        for process in self._ended:
            _end_group(process)
            process.wait()

    def _start(self, role: str) -> None:
        self._incarnations[role] = self._incarnations.get(role, 0) + 1
        name = self.name(role)
        config = replace(self._config, name=name, url=self._route(name), skew=SKEWED.get(role, 0.0))
        # A session of its own, so that a signal can reach the process and all it has started.
        command = [sys.executable, "-m", f"laneway.dev.chaos.{ROLES[role]}"]
        with open(Path(config.folder) / "errors.txt", "ab") as errors:
            self._processes[role] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, CONFIG_VARIABLE: config.text()},
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
        self.end()
        for process in self._ended:
            if process.stdin is not None:
                process.stdin.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
