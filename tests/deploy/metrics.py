"""Which metrics there are, with their labels."""

from laneway.exporter.counters import METRICS
from tests.deploy.promql import read
from tests.exporter.test_metrics_page import worker_metrics

LABELS: dict[str, set[str]] = {}
for metric in METRICS:
    if metric.type == "histogram":
        LABELS[f"{metric.name}_bucket"] = {*metric.labels, "le"}
        LABELS[f"{metric.name}_count"] = set(metric.labels)
    else:
        LABELS[metric.name] = set(metric.labels)
for name, kind, labels, _ in worker_metrics():
    suffix = "_bucket" if kind == "histogram" else ""
    LABELS[name + suffix] = {*labels.split(", "), "le"} if suffix else set(labels.split(", "))


def check_expression(text: str) -> None:
    """Every metric exists and has the labels that the expression names."""
    found = read(text)
    for metric, labels in found.metrics.items():
        assert metric in LABELS, f"there is no metric {metric}: {text}"
        assert labels <= LABELS[metric], f"{metric} has no labels {labels - LABELS[metric]}: {text}"
    known = set().union(*(LABELS[metric] for metric in found.metrics))
    assert found.grouped <= known, f"no metric has {found.grouped - known}: {text}"
