"""Spark on the queue: ``format("laneway")`` for frames and streams, and a session to try it.

>>> spark = laneway.spark.session()
>>> spark.read.format("laneway").option("url", url).load().groupBy("outcome").count().show()

The connector is written in Python on Spark's Python data sources: there is no jar, and nothing to
register. Importing this package does not import pyspark. See docs/reference/spark.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .doctor import Check, doctor
from .errors import reason
from .session import session

if TYPE_CHECKING:
    from .handlers.batch import handle
    from .handlers.driver import run_handlers
    from .publish.calls import calls
    from .streams.lag import Watermark, watermark

_LAZY = {
    "Watermark": "streams.lag",
    "calls": "publish.calls",
    "handle": "handlers.batch",
    "run_handlers": "handlers.driver",
    "watermark": "streams.lag",
}

__all__ = [
    "Check",
    "Watermark",
    "calls",
    "doctor",
    "handle",
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
