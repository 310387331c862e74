"""The parameters of a report: the objective, and the precision of its percentiles."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from laneway.errors import InvalidOption

ERROR = 0.01
"""The relative error of a percentile."""

GROWTH = math.log((1 + ERROR) / (1 - ERROR))
"""The logarithm of the ratio between the bounds of a sketch's bucket."""


@dataclass(frozen=True, slots=True)
class Objective:
    """``share`` of all attempts start within ``wait`` of being due."""

    wait: timedelta = timedelta(seconds=60)
    share: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidOption(f"share is {self.share}: an objective's share is between 0 and 1")
        if self.wait <= timedelta(0):
            raise InvalidOption(f"wait is {self.wait}: an objective's wait must be above zero")

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the tables' statements."""
        return {"objective_us": self.wait // timedelta(microseconds=1), "growth": GROWTH}
