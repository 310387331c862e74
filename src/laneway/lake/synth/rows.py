"""Rows of history, collected by column and converted to Arrow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from laneway.lake.columns import HISTORY, INSTANT, LIVE

from .arrivals import Ints

ABSENT = np.iinfo(np.int64).min
"""Stands for NULL in a column of numbers or times."""

OUTCOMES = (
    "completed",
    "deferred",
    "retried",
    "failed",
    "expired",
    "given_back",
    "cancelled",
    "lapsed",
    "redriven",
    "discarded",
    "stale",
)
CODE = {name: code for code, name in enumerate(OUTCOMES)}
TERMINAL = [CODE[name] for name in ("completed", "cancelled", "lapsed", "discarded")]
REASONS = ("max_attempts", "error", "complete")
NUMBERS = (
    "message",
    "attempt",
    "first",
    "published",
    "due",
    "claimed",
    "ended",
    "outcome",
    "reason",
    "error",
    "worker",
    "dead",
)


class Rows:
    """Collects whole columns; ``error`` is an index into ``errors``, a list of (type, text)."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Ints]] = {name: [] for name in NUMBERS}
        self.errors: list[tuple[str, str]] = []

    def add(self, message: Ints, **columns: Any) -> None:
        for name in NUMBERS:
            value = message if name == "message" else columns.get(name, ABSENT)
            whole = np.broadcast_to(np.asarray(value, dtype=np.int64), message.shape)
            self._parts[name].append(whole)

    def columns(self) -> dict[str, Ints]:
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}


def words(codes: Ints, values: Sequence[str | None]) -> pa.Array:
    """The texts of the codes."""
    masked = pa.array(codes, mask=codes == ABSENT)
    return pa.DictionaryArray.from_arrays(masked, pa.array(values, pa.string())).cast(pa.string())


def numbers(values: Ints, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, mask=values == ABSENT).cast(kind or pa.int64())


def instants(values: Ints) -> pa.Array:
    return numbers(values, INSTANT)


def history_table(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({name: columns[name] for name in HISTORY.names}, schema=HISTORY)


def live_table(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({name: columns[name] for name in LIVE.names}, schema=LIVE)
