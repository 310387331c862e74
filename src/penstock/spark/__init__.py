"""Spark on the queue: ``format("penstock")`` for DataFrames and streams, and a session to try it.

>>> spark = penstock.spark.session()
>>> spark.read.format("penstock").option("url", url).load().groupBy("outcome").count().show()

The connector is plain Python on Spark's Python data sources: nothing to register, no jar. Importing
this package does not import pyspark; see docs/reference/spark.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .doctor import Check, doctor
from .faults import reason
from .session import session

if TYPE_CHECKING:
    from .foreman import run_handlers
    from .handling import handle
    from .lag import Watermark, watermark

_LAZY = {
    "Watermark": "lag",
    "handle": "handling",
    "run_handlers": "foreman",
    "watermark": "lag",
}

__all__ = [
    "Check",
    "Watermark",
    "doctor",
    "handle",
    "reason",
    "run_handlers",
    "session",
    "watermark",
]


def __getattr__(name: str) -> Any:
    """These load a driver."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
