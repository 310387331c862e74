"""The worker processes of a soak, and what they say."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from types import TracebackType
from typing import Self

from .labour import edge_of
from .terms import URL


class Crew:
    """Starts them; all are gone at its end."""

    def __init__(self, url: str, workers: int) -> None:
        self._lock = threading.Lock()
        self._done = [0] * workers
        self._memory = [0] * workers
        self._late: Counter[int] = Counter()
        command = [sys.executable, "-m", "benchmarks.soak.labour"]
        place = {**os.environ, URL: url}
        self._processes = [
            subprocess.Popen(command, env=place, stdout=subprocess.PIPE) for _ in range(workers)
        ]
        self._threads = [
            threading.Thread(target=self._hear, args=(number,)) for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def done(self) -> int:
        return sum(self._done)

    @property
    def memory(self) -> int:
        """Bytes of the largest."""
        return max(self._memory)

    def late(self, share: float = 0.99) -> float:
        """Of those picked up since the last time this was asked: how late, in seconds."""
        with self._lock:
            seen, self._late = self._late, Counter()
        left = sum(seen.values()) * share
        for number in sorted(seen):
            left -= seen[number]
            if left <= 0:
                return edge_of(number)
        return 0.0

    def dismiss(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)

    def _hear(self, number: int) -> None:
        output = self._processes[number].stdout
        assert output is not None
        for line in output:
            told = json.loads(line)
            with self._lock:
                self._done[number], self._memory[number] = told["done"], told["memory"]
                self._late.update({int(n): count for n, count in told["late"].items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            if process.stdout is not None:
                process.stdout.close()
