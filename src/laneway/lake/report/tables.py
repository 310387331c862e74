"""The report's tables: the queries of the daily ones, the columns of all, and the parameters: the
objective, and the precision of percentiles."""

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from laneway.errors import InvalidOption
from laneway.sqlfile import read_blocks

DAILY = (
    "flow",
    "latency",
    "lanes",
    "tries",
    "failures",
    "crashes",
    "repeats",
    "tenants",
    "letters",
    "percentiles",
    "hours",
    "fairness",
)
"""Each comes after those that it reads."""
_QUEUE = "queue string"
_LANE = f"{_QUEUE}, channel string"
_SIGNATURE = "type string, frame string, text string"
_SEEN = "first_at timestamp, last_at timestamp"
_SLOT = "day date, slot timestamp"
_HOUR = "day date, hour timestamp"

COLUMNS = {
    "flow": f"{_SLOT}, {_LANE}, kind string, starts bigint, completed bigint, deferred bigint, "
    "retried bigint, failed bigint, expired bigint, given_back bigint, cancelled bigint, "
    "lapsed bigint, redriven bigint, discarded bigint, stale bigint, dead bigint, late bigint, "
    "wait_us bigint, run_us bigint",
    "latency": f"{_SLOT}, {_LANE}, kind string, measure string, n bigint, total_us bigint, "
    "max_us bigint, buckets array<struct<bucket: int, n: bigint>>",
    "lanes": f"{_SLOT}, {_LANE}, came bigint, started bigint, waiting bigint, "
    "waiting_before bigint, running bigint, oldest_s double",
    "tries": f"day date, {_QUEUE}, kind string, attempt bigint, completed bigint",
    "failures": f"day date, {_QUEUE}, kind string, {_SIGNATURE}, n bigint, messages bigint, "
    f"channels bigint, dead bigint, {_SEEN}, example string",
    "crashes": f"day date, {_LANE}, kind string, message_id bigint, expired bigint, "
    f"workers bigint, dead boolean, {_SEEN}, worker_names array<string>",
    "repeats": f"day date, {_QUEUE}, stale bigint, stale_complete bigint, again bigint, "
    "twice bigint",
    "tenants": f"day date, {_LANE}, starts bigint, completed bigint, failing bigint, run_s double, "
    "wasted_s double, bytes bigint",
    "letters": f"day date, at timestamp, message_id bigint, {_LANE}, kind string, event string, "
    f"again boolean, {_SIGNATURE}",
    "percentiles": f"day date, grain string, hour timestamp, {_LANE}, kind string, "
    "measure string, n bigint, p50 double, p95 double, p99 double",
    "hours": f"{_HOUR}, {_QUEUE}, came bigint, started bigint, waiting_peak bigint, "
    "waiting_last bigint, running_peak bigint, oldest_s double, starts_ended bigint, "
    "completed bigint, failing bigint, dead bigint, late bigint, workers bigint, "
    "mean_waiting double, mean_running double, mean_wait_s double, mean_run_s double, "
    "little_waiting double, little_running double",
    "fairness": f"{_HOUR}, {_QUEUE}, channels bigint, starts bigint, top_channel string, "
    "top_share double, contested_slots bigint, contenders bigint, jain double, "
    "worst_jain double, quiet_p95 double",
    "signatures": f"{_QUEUE}, kind string, {_SIGNATURE}, n bigint, dead bigint, channels bigint, "
    f"{_SEEN}, today bigint, yesterday bigint, is_new boolean, example string",
    "redrive": f"{_QUEUE}, kind string, {_SIGNATURE}, letters bigint, oldest timestamp, "
    "redriven bigint, recovered bigint, died_again bigint, discarded bigint, last_at timestamp, "
    "completed_since bigint, advice string",
    "slo": f"{_QUEUE}, window_hours int, starts bigint, late bigint, late_share double, "
    "burn double",
    "normal": f"{_QUEUE}, hour timestamp, metric string, value double, usual double, "
    "deviation double, samples bigint, weekly boolean, verdict string",
    "forecast": f"{_QUEUE}, hour timestamp, expected double, capacity bigint, backlog double",
    "outlook": f"{_QUEUE}, waiting bigint, scheduled bigint, leased bigint, dead bigint, "
    "oldest_s double, came_per_hour bigint, started_per_hour bigint, drains_in_s double, "
    "best_hour bigint, slots bigint, workers bigint, utilisation double, slots_needed bigint",
    "recent": f"{_LANE}, completed bigint, failing bigint, died bigint, last_completed bigint, "
    "last_failing bigint, waiting bigint, oldest_s double",
}
"""The columns of each table, as Spark names their types."""


@cache
def queries(file: str) -> dict[str, str]:
    """The queries of a file beside this module, by name."""
    return read_blocks((files(__package__) / file).read_text(encoding="utf-8"))


def table_sql(name: str) -> str:
    """The query of a daily table."""
    return queries("tables.sql")[name]


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
