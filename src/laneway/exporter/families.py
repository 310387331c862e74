"""A reading as families of Prometheus samples."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from laneway.extras import needs
from laneway.operations import WAIT_BOUNDS

from .counters import BY_NAME, Counters
from .reader import Reading, Snapshot

with needs("The exporter", "prometheus-client", "metrics"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

GAUGES_KEPT = 300.0
"""Seconds for which the last numbers are still shown when the database does not answer."""
_STATES = ("waiting", "scheduled", "leased", "dead")
_BREAKERS = ("closed", "open", "probing")
_WORKER_STATES = ("running", "stopping", "vanished")
Values = Mapping[Any, float]
"""By the values of the labels."""
_BOUNDS = (*map(str, WAIT_BOUNDS), "+Inf")


def families(reading: Reading, counters: Counters) -> Iterator[Metric]:
    yield _gauge("laneway_up", {(): float(reading.problem is None)})
    yield _gauge("laneway_read_seconds", {(): reading.seconds})
    snapshot = reading.snapshot
    if snapshot is None:
        return
    yield _gauge("laneway_snapshot_age_seconds", {(): reading.age})
    if reading.age <= GAUGES_KEPT:
        yield from _now(snapshot)
        yield from _workers(snapshot)
    yield from _counted(counters)


def _now(snapshot: Snapshot) -> Iterator[Metric]:
    queues = snapshot.queues
    yield _gauge("laneway_schema_version", {(): snapshot.version})
    yield _gauge("laneway_schema_version_needed", {(): snapshot.version_needed})
    yield _gauge(
        "laneway_messages",
        {(n.queue, state): getattr(n, state) for n in queues for state in _STATES},
    )
    yield _gauge("laneway_messages_exact", {(n.queue,): float(n.exact) for n in queues})
    yield _gauge(
        "laneway_oldest_seconds",
        {
            (n.queue,): 0.0
            if n.oldest_due is None
            else max(0.0, (snapshot.at - n.oldest_due).total_seconds())
            for n in queues
        },
    )
    yield _gauge("laneway_channels", {(n.queue,): n.channels for n in queues})
    yield _gauge("laneway_channels_blocked", snapshot.blocked)
    limits = snapshot.limits
    yield _gauge("laneway_limit_running", {(x.name,): x.running for x in limits})
    yield _gauge("laneway_limit_waiting", {(x.name,): x.waiting for x in limits})
    in_force = {(x.name,): x.in_force for x in limits if x.in_force is not None}
    yield _gauge("laneway_limit_in_force", in_force)
    broken = [x for x in limits if x.state is not None]
    states = {(x.name, state): float(x.state == state) for x in broken for state in _BREAKERS}
    yield _gauge("laneway_limit_breaker", states)


def _workers(snapshot: Snapshot) -> Iterator[Metric]:
    states: Counter[str] = Counter(worker.state for worker in snapshot.workers)
    yield _gauge("laneway_workers", {(state,): states[state] for state in _WORKER_STATES})
    running = [worker for worker in snapshot.workers if worker.state == "running"]
    serving = Counter(queue for worker in running for queue in worker.queues)
    names = {n.queue for n in snapshot.queues} | set(serving)
    yield _gauge("laneway_queue_workers", {(name,): serving[name] for name in sorted(names)})
    yield _gauge("laneway_worker_slots", {(): sum(worker.slots for worker in running)})
    yield _gauge("laneway_worker_slots_used", {(): sum(worker.used for worker in running)})


def _counted(counters: Counters) -> Iterator[Metric]:
    places = sorted(counters.places.items())
    yield _gauge("laneway_minutes_exact", {(): float(counters.exact)})
    yield _counter("laneway_published_total", {at: n.published for at, n in places})
    yield _counter("laneway_started_total", {at: n.started for at, n in places})
    yield _counter("laneway_dead_total", {at: n.dead for at, n in places})
    yield _counter("laneway_redriven_total", {at: n.redriven for at, n in places})
    yield _counter(
        "laneway_ended_total",
        {(*at, outcome): count for at, n in places for outcome, count in n.ended.items()},
    )
    yield _histogram("laneway_wait_seconds", {at: n.waits for at, n in places})
    yield _histogram("laneway_run_seconds", {at: n.runs for at, n in places})


def _gauge(name: str, values: Values) -> Metric:
    metric = BY_NAME[name]
    family = GaugeMetricFamily(name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _counter(name: str, values: Values) -> Metric:
    metric = BY_NAME[name]
    family = CounterMetricFamily(name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _histogram(name: str, values: Mapping[tuple[str, str], list[int]]) -> Metric:
    """Without a sum, which the minute figures do not have."""
    metric = BY_NAME[name]
    family = Metric(name, metric.help, "histogram")
    for place, counts in values.items():
        labels = dict(zip(metric.labels, place, strict=True))
        upto: Sequence[int] = list(accumulate(counts))
        for bound, count in zip(_BOUNDS, upto, strict=True):
            family.add_sample(f"{name}_bucket", labels | {"le": bound}, count)
        family.add_sample(f"{name}_count", labels, upto[-1])
    return family
