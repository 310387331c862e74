"""The exporter: what a scrape answers, alone or inside of another server."""

import asyncio
import threading
from collections.abc import Iterator

from laneway.client.shared.checks import check_number
from laneway.client.sync.queue import Queue
from laneway.durations import Duration, check_duration, to_seconds
from laneway.extras import needs
from laneway.worker.telemetry.health import LOOPBACK, Health, check_address

from .counters import Counters
from .families import families
from .reader import Reading, Snapshot, SnapshotReader, read_snapshot

with needs("The exporter", "prometheus-client", "metrics"):
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
PORT = 9595
MAX_AGE = 2.0
TIMEOUT = 5.0


class Exporter:
    """Numbers of the whole schema, read with ``queue``'s connections.

    A scrape reads the database at most once in ``max_age``, however many ask, and waits no longer
    than ``timeout``: then it says ``laneway_up 0`` and shows the last numbers and their age.

    >>> exporter = Exporter(queue)
    >>> exporter.scrape()
    """

    def __init__(
        self, queue: Queue, *, max_age: Duration = MAX_AGE, timeout: Duration = TIMEOUT
    ) -> None:
        self._queue = queue
        self._counters = Counters()
        self._lock = threading.Lock()
        self._reader = SnapshotReader(
            self._read,
            to_seconds(check_duration("max_age", max_age)),
            to_seconds(check_duration("timeout", timeout)),
        )
        self._registry = CollectorRegistry()
        self._registry.register(_Families(self))

    def scrape(self) -> bytes:
        """Prometheus text; never raises because of the database. Its type is CONTENT_TYPE."""
        return generate_latest(self._registry)

    def reading(self) -> Reading:
        return self._reader.get()

    def families(self) -> list[Metric]:
        reading = self.reading()
        with self._lock:
            return list(families(reading, self._counters))

    def _read(self) -> Snapshot:
        snapshot = read_snapshot(self._queue)
        with self._lock:
            self._counters.add(snapshot.minutes)
        return snapshot

    async def serve(
        self, host: str = LOOPBACK, port: int = PORT, stop: asyncio.Event | None = None
    ) -> None:
        """Answers /metrics, /livez and /readyz until it is stopped or cancelled."""
        health = Health(self._answer)
        health.ready = self._problems
        host, port = check_address(host, check_number("port", port, 0, 65535))
        await health.start(host, port)
        try:
            await (stop or asyncio.Event()).wait()
        finally:
            await health.close()

    async def _answer(self) -> tuple[bytes, str]:
        return await asyncio.to_thread(self.scrape), CONTENT_TYPE

    async def _problems(self) -> list[str]:
        problem = (await asyncio.to_thread(self.reading)).problem
        return [] if problem is None else [problem]


class _Families(Collector):
    """Registering it reads nothing: the registry would ask for its names otherwise."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._exporter.families()
