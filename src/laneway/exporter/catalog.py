"""Every metric of the exporter: its name, labels and meaning. The reference lists the same.

A channel is never a label: there may be a million of them.
"""

from typing import Literal, NamedTuple

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
