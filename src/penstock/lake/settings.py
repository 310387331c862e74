"""What a report takes as given: the objective, and how exact its sketches are."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.errors import InvalidOption

ERROR = 0.01
"""A percentile is within this share of the true one."""

GROWTH = math.log((1 + ERROR) / (1 - ERROR))
"""The logarithm of the ratio between two borders of a sketch's buckets."""


@dataclass(frozen=True, slots=True)
class Objective:
    """``share`` of all starts happen within ``wait`` of being due."""

    wait: timedelta = timedelta(seconds=60)
    share: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidOption(f"an objective's share lies between 0 and 1, not {self.share}")
        if self.wait <= timedelta(0):
            raise InvalidOption("an objective's wait is longer than nothing")

    @property
    def arguments(self) -> dict[str, Any]:
        """For the statements of the tables."""
        return {"objective_us": self.wait // timedelta(microseconds=1), "growth": GROWTH}
