"""Spark on the queue: ``format("laneway")`` for frames and streams, and a session to try it.

>>> spark = laneway.spark.session()
>>> spark.read.format("laneway").option("url", url).load().groupBy("outcome").count().show()

The connector is written in Python on Spark's Python data sources: there is no jar, and nothing to
register. Importing this package does not import pyspark. See docs/reference/spark.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .environment import Check, doctor, session
from .errors import reason

if TYPE_CHECKING:
    from .handlers import handle, run_handlers
    from .history_stream import Watermark, watermark
    from .payloads import calls, payload_schema, read_payload

_LAZY = {
    "Watermark": "history_stream",
    "calls": "payloads",
    "handle": "handlers",
    "payload_schema": "payloads",
    "read_payload": "payloads",
    "run_handlers": "handlers",
    "watermark": "history_stream",
}

__all__ = [
    "Check",
    "Watermark",
    "calls",
    "doctor",
    "handle",
    "payload_schema",
    "read_payload",
    "reason",
    "run_handlers",
    "session",
    "watermark",
]


def __getattr__(name: str) -> Any:
    """Imported on first use, because they import a database driver."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
