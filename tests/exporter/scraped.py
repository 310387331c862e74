"""What a scrape said, by name and labels."""

import time
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from laneway.exporter import Exporter


class Scraped:
    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value with exactly these labels."""
        found = [s.value for s in self.samples if s.name == name and s.labels == labels]
        return found[0] if found else None

    def total(self, name: str, **labels: str) -> float:
        """Added up over all series that have these labels."""
        return sum(
            s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()
        )

    def labels(self, name: str) -> set[tuple[str, ...]]:
        return {tuple(s.labels) for s in self.samples if s.name == name}


def scraped(exporter: Exporter) -> Scraped:
    return Scraped(exporter.scrape().decode())


def counted(queue: Any, exporter: Exporter, name: str, wanted: float, /, **labels: str) -> Scraped:
    """Scrapes until the counter has risen so far: upkeep counts what no open transaction can still
    come before."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        queue.upkeep()
        found = scraped(exporter)
        if found.total(name, **labels) >= wanted:
            return found
    raise AssertionError(f"{name} is {found.total(name, **labels)}, not {wanted}")
