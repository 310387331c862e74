"""The reference lists every metric, as the code has it."""

import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from laneway.exporter.counters import METRICS
from laneway.integrations.otel import instruments
from laneway.worker.telemetry.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()
ROW = re.compile(r"^\| `(laneway_\w+)` \| (\w+) \| ([\w, ]*) \| (.+) \|$", re.MULTILINE)


def test_every_metric_is_on_the_page_as_it_is_in_the_code() -> None:
    listed = ROW.findall(PAGE)
    exported = [(m.name, m.type, ", ".join(m.labels), m.help) for m in METRICS]
    assert listed == exported + worker_metrics()


def worker_metrics() -> list[tuple[str, str, str, str]]:
    registry = CollectorRegistry()
    Metrics(registry)
    found: list[Any] = list(registry._collector_to_names)  # in the order they were made
    return [
        (
            metric._name + ("_total" if metric._type == "counter" else ""),
            metric._type,
            ", ".join(metric._labelnames),
            metric._documentation,
        )
        for metric in found
        if hasattr(metric, "_documentation")
    ]


def test_the_names_of_opentelemetry_are_on_the_page() -> None:
    for name in (
        instruments.SENT,
        instruments.CONSUMED,
        instruments.OPERATION_DURATION,
        instruments.PROCESS_DURATION,
    ):
        assert f"| `{name}` |" in PAGE
