"""Every metric of the exporter, its name, labels and meaning; and a reading as families of samples.
The reference lists the same. A channel is never a label: there may be a million of them.

A channel is never a label: there may be a million of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from laneway.extras import needs
from laneway.operations import WAIT_BOUNDS

from .counters import Counters
from .reader import Reading, Snapshot

Type = Literal["gauge", "counter", "histogram"]


class MetricInfo(NamedTuple):
    """``name`` is the one in queries, without the suffixes of a histogram."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str


_QUEUE = ("queue",)
_KIND = ("queue", "kind")

METRICS = (
    MetricInfo("laneway_up", "gauge", (), "1 if the last read of the database worked, else 0"),
    MetricInfo("laneway_snapshot_age_seconds", "gauge", (), "Age of the numbers that are shown"),
    MetricInfo("laneway_read_seconds", "gauge", (), "How long the last read of the database took"),
    MetricInfo("laneway_schema_version", "gauge", (), "Number of the schema's last migration"),
    MetricInfo("laneway_schema_version_needed", "gauge", (), "The number that this version needs"),
    MetricInfo(
        "laneway_messages",
        "gauge",
        ("queue", "state"),
        "Messages by state: waiting, scheduled, leased or dead",
    ),
    MetricInfo(
        "laneway_messages_exact",
        "gauge",
        _QUEUE,
        "1 if laneway_messages is exact, 0 if it is about right because very many wait",
    ),
    MetricInfo(
        "laneway_oldest_seconds",
        "gauge",
        _QUEUE,
        "For how long the oldest waiting message has been due; 0 if none waits",
    ),
    MetricInfo("laneway_channels", "gauge", _QUEUE, "Channels that hold messages"),
    MetricInfo(
        "laneway_channels_blocked",
        "gauge",
        ("queue", "reason"),
        "Channels whose messages wait for a pause or a limit, of the 1,000 fullest limited ones",
    ),
    MetricInfo("laneway_workers", "gauge", ("state",), "Worker processes by state"),
    MetricInfo("laneway_queue_workers", "gauge", _QUEUE, "Running workers that serve the queue"),
    MetricInfo("laneway_worker_slots", "gauge", (), "Handlers that running workers could run"),
    MetricInfo("laneway_worker_slots_used", "gauge", (), "Handlers that run in them"),
    MetricInfo("laneway_published_total", "counter", _KIND, "Messages published"),
    MetricInfo(
        "laneway_started_total", "counter", _KIND, "Attempts that have ended, by their start"
    ),
    MetricInfo(
        "laneway_ended_total",
        "counter",
        ("queue", "kind", "outcome"),
        "Ends by outcome: completed, retried, failed, expired, deferred, given_back, cancelled, "
        "lapsed, discarded",
    ),
    MetricInfo("laneway_dead_total", "counter", _KIND, "Messages that became dead letters"),
    MetricInfo("laneway_redriven_total", "counter", _KIND, "Dead letters that were redriven"),
    MetricInfo("laneway_wait_seconds", "histogram", _KIND, "From due to claimed, by attempt"),
    MetricInfo("laneway_run_seconds", "histogram", _KIND, "From claimed to ended, by attempt"),
    MetricInfo(
        "laneway_minutes_exact",
        "gauge",
        (),
        "1 if all that ended was counted, 0 if the history is not fully kept",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}

OUTCOMES = (
    "completed",
    "retried",
    "failed",
    "expired",
    "deferred",
    "given_back",
    "cancelled",
    "lapsed",
    "discarded",
)


with needs("The exporter", "prometheus-client", "metrics"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

GAUGES_KEPT = 300.0
"""Seconds for which the last numbers are still shown when the database does not answer."""
_STATES = ("waiting", "scheduled", "leased", "dead")
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
