"""Prometheus metrics of a worker; needs the extra ``metrics``."""

from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from laneway.extras import needs
from laneway.model import ClaimStatus, Settled
from laneway.worker.job import Job

from .observer import OutcomeName, settled_name

with needs("Metrics", "prometheus-client", "metrics"):
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600)


class _Families(NamedTuple):
    messages: Counter
    seconds: Histogram
    claims: Counter
    claimed: Counter
    claim_seconds: Histogram
    lost: Counter


# A registry takes each name once, and a process may have several workers.
_of_registry: "WeakKeyDictionary[CollectorRegistry, _Families]" = WeakKeyDictionary()
_opening = Lock()


def _families(registry: CollectorRegistry) -> _Families:
    with _opening:
        if registry not in _of_registry:
            _of_registry[registry] = _new_families(registry)
        return _of_registry[registry]


def _new_families(registry: CollectorRegistry) -> _Families:
    return _Families(
        Counter(
            "laneway_worker_messages",
            "Messages whose handler has ended, by outcome",
            ["queue", "kind", "outcome"],
            registry=registry,
        ),
        Histogram(
            "laneway_worker_handler_seconds",
            "How long handlers ran",
            ["queue", "kind"],
            buckets=_SECONDS,
            registry=registry,
        ),
        Counter("laneway_worker_claims", "Claims, by status", ["status"], registry=registry),
        Counter("laneway_worker_claimed_messages", "Messages claimed", registry=registry),
        Histogram(
            "laneway_worker_claim_seconds",
            "How long claims took",
            buckets=_SECONDS,
            registry=registry,
        ),
        Counter("laneway_worker_leases_lost", "Leases lost", ["queue", "kind"], registry=registry),
    )


class Metrics:
    """An observer for ``Worker(observers=[Metrics()])``. All of one registry count into the same
    series.

    Kinds without a handler are counted under one name, so that nobody can publish a million label
    values.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._families = _families(registry)

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None:
        self._families.claims.labels(status.value).inc()
        self._families.claimed.inc(messages)
        self._families.claim_seconds.observe(seconds)

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        self._families.seconds.labels(job.queue, _kind(job)).observe(seconds)

    def lost(self, job: Job) -> None:
        self._families.lost.labels(job.queue, _kind(job)).inc()

    def settled(self, job: Job, result: Settled | None) -> None:
        if job.outcome is not None:  # its handler has run
            name = settled_name(job.outcome, result or job.own_result)
            self._families.messages.labels(job.queue, _kind(job), name).inc()


def _kind(job: Job) -> str:
    return "(no handler)" if job.handler is None else job.kind
