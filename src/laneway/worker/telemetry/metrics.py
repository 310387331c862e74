"""Prometheus metrics of a worker; needs the extra ``metrics``."""

from laneway.extras import needs
from laneway.model import ClaimStatus, Settled
from laneway.worker.job import Job

from .observer import OutcomeName

with needs("Metrics", "prometheus-client", "metrics"):
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600)


class Metrics:
    """An observer for ``Worker(observers=[Metrics()])``. One per process and registry.

    Kinds without a handler are counted under one name, so that nobody can publish a million label
    values.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._ended = Counter(
            "laneway_worker_messages",
            "Messages whose handler has ended, by outcome",
            ["queue", "kind", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "laneway_worker_handler_seconds",
            "How long handlers ran",
            ["queue", "kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._claims = Counter(
            "laneway_worker_claims", "Claims, by status", ["status"], registry=registry
        )
        self._claimed = Counter(
            "laneway_worker_claimed_messages", "Messages claimed", registry=registry
        )
        self._claim_seconds = Histogram(
            "laneway_worker_claim_seconds",
            "How long claims took",
            buckets=_SECONDS,
            registry=registry,
        )
        self._lost = Counter(
            "laneway_worker_leases_lost", "Leases lost", ["queue", "kind"], registry=registry
        )

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        self._claims.labels(status.value).inc()
        self._claimed.inc(messages)
        self._claim_seconds.observe(seconds)

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        kind = _kind(job)
        self._ended.labels(job.queue, kind, outcome).inc()
        self._seconds.labels(job.queue, kind).observe(seconds)

    def lost(self, job: Job) -> None:
        self._lost.labels(job.queue, _kind(job)).inc()

    def settled(self, job: Job, result: Settled | None) -> None:
        pass


def _kind(job: Job) -> str:
    return "(no handler)" if job.handler is None else job.kind
