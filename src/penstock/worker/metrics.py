"""Prometheus metrics of a worker; needs the extra ``metrics``."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from penstock.model import Answer

from .job import Job
from .watching import Ending

_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600)


class Metrics:
    """A watcher for ``Worker(watchers=[Metrics()])``. One per process and registry.

    Kinds without a handler are counted under one name, so that nobody can publish a million label
    values.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._ended = Counter(
            "penstock_messages",
            "Messages whose handler has ended, by what became of them",
            ["queue", "kind", "ending"],
            registry=registry,
        )
        self._seconds = Histogram(
            "penstock_handler_seconds",
            "How long handlers ran",
            ["queue", "kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._claims = Counter(
            "penstock_claims", "Claims, by their answer", ["answer"], registry=registry
        )
        self._claimed = Counter("penstock_claimed", "Messages claimed", registry=registry)
        self._claim_seconds = Histogram(
            "penstock_claim_seconds", "How long claims took", buckets=_SECONDS, registry=registry
        )
        self._lost = Counter("penstock_lost", "Leases lost", ["queue", "kind"], registry=registry)

    def claimed(self, messages: int, answer: Answer, seconds: float) -> None:
        self._claims.labels(answer.value).inc()
        self._claimed.inc(messages)
        self._claim_seconds.observe(seconds)

    def ended(self, job: Job, ending: Ending, seconds: float) -> None:
        kind = _kind(job)
        self._ended.labels(job.queue, kind, ending).inc()
        self._seconds.labels(job.queue, kind).observe(seconds)

    def lost(self, job: Job) -> None:
        self._lost.labels(job.queue, _kind(job)).inc()


def _kind(job: Job) -> str:
    return "(no handler)" if job.handler is None else job.kind
