"""The exporter: what a scrape answers, alone or inside of another server."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from laneway.client.shared.checks import check_number
from laneway.client.sync.queue import Queue
from laneway.durations import Duration, check_duration, to_seconds
from laneway.errors import InvalidOption
from laneway.extras import needs
from laneway.worker.telemetry.health import LOOPBACK, Health, PartlyReady, check_address

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


class _Part:
    """What is read of one database."""

    def __init__(self, queue: Queue, max_age: float, timeout: float) -> None:
        self._queue = queue
        self._counters = Counters()
        self._lock = threading.Lock()
        self._reader = SnapshotReader(self._read, max_age, timeout)

    def reading(self) -> Reading:
        return self._reader.get()

    def families(self, reading: Reading) -> list[Metric]:
        with self._lock:
            return list(families(reading, self._counters))

    def _read(self) -> Snapshot:
        snapshot = read_snapshot(self._queue)
        with self._lock:
            self._counters.add(snapshot.minutes)
        return snapshot


class Exporter:
    """Numbers of the whole schema, read with ``queue``'s connections. With several queues by name,
    every sample has the label ``database``.

    A scrape reads a database at most once in ``max_age``, however many ask, and waits no longer
    than ``timeout``: then it says ``laneway_up 0`` and shows the last numbers and their age.

    >>> exporter = Exporter(queue)
    >>> exporter.scrape()
    """

    def __init__(
        self,
        queue: Queue | Mapping[str, Queue],
        *,
        max_age: Duration = MAX_AGE,
        timeout: Duration = TIMEOUT,
    ) -> None:
        named = queue if isinstance(queue, Mapping) else {None: queue}
        if not named:
            raise InvalidOption("an exporter needs a Queue: there is none")
        seconds = [
            to_seconds(check_duration("max_age", max_age)),
            to_seconds(check_duration("timeout", timeout)),
        ]
        self._parts = {name: _Part(one, *seconds) for name, one in named.items()}
        self._registry = CollectorRegistry()
        self._registry.register(_Families(self))

    def scrape(self) -> bytes:
        """Prometheus text; never raises because of the database. Its type is CONTENT_TYPE."""
        return generate_latest(self._registry)

    def readings(self) -> dict[str | None, Reading]:
        """By the name of the database; None if there is one. All are read at the same time."""
        if len(self._parts) == 1:
            return {name: part.reading() for name, part in self._parts.items()}
        with ThreadPoolExecutor(len(self._parts)) as threads:
            asked = {name: threads.submit(part.reading) for name, part in self._parts.items()}
        return {name: answer.result() for name, answer in asked.items()}

    def families(self) -> list[Metric]:
        found: dict[str, Metric] = {}
        for name, reading in self.readings().items():
            for family in self._parts[name].families(reading):
                if name is None:
                    found[family.name] = family
                    continue
                merged = found.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type)
                )
                for sample in family.samples:
                    labels = {"database": name, **sample.labels}
                    merged.samples.append(sample._replace(labels=labels))
        return list(found.values())

    def problems(self) -> list[str]:
        """What could not be read, with the name of its database if there are several."""
        read = self.readings().items()
        found = [(name, reading.problem) for name, reading in read if reading.problem is not None]
        texts = [text if name is None else f"{name}: {text}" for name, text in found]
        return texts if len(texts) == len(self._parts) else PartlyReady(texts)

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
        return await asyncio.to_thread(self.problems)


class _Families(Collector):
    """Registering it reads nothing: the registry would ask for its names otherwise."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._exporter.families()
