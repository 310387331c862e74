"""Pools of connections that handlers bring along: too small for the worker, or exhausted.

Whatever the pool of an application holds, the worker runs as many handlers at a time as its own
concurrency says. Those beyond the pool wait, half a minute as a rule, and then fail.
"""

import logging
import sys
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from weakref import WeakSet

from laneway.drivers.choice import OWN_POOL

_log = logging.getLogger("laneway.worker")

RETRY_AFTER = timedelta(seconds=5)
"""Until a message is handled again whose handler found no free connection."""

# By module: what its pools raise when nobody gave a connection back in time.
_TIMEOUTS = {
    "sqlalchemy.exc": ("TimeoutError",),
    "psycopg_pool": ("PoolTimeout", "TooManyRequests"),
}


def is_exhausted(error: BaseException) -> bool:
    """Whether it says that a pool had no free connection: that is not the message's fault."""
    for name, classes in _TIMEOUTS.items():
        module = sys.modules.get(name)  # not imported: then it has raised nothing
        if module is not None and isinstance(error, tuple(getattr(module, c) for c in classes)):
            return True
    return False


_concurrency: ContextVar[int | None] = ContextVar("laneway_concurrency", default=None)
_warned: "WeakSet[Any]" = WeakSet()
_watching = False


def watch(concurrency: int) -> None:
    """Has a warning logged when a handler, whose context this is, takes a connection out of a pool
    of SQLAlchemy that is smaller. Other pools do not tell who takes one."""
    global _watching
    _concurrency.set(concurrency)
    if not _watching and "sqlalchemy" in sys.modules:
        from sqlalchemy import event
        from sqlalchemy.pool import Pool

        event.listen(Pool, "checkout", _checked_out)
        _watching = True


def _checked_out(connection: object, record: object, proxy: Any) -> None:
    concurrency, pool = _concurrency.get(), proxy._pool
    if concurrency is None or pool in _warned:
        return
    most = _most(pool)
    if most is not None and most < concurrency:
        _warned.add(pool)
        _log.warning(
            "this worker runs up to %d handlers at a time, but the SQLAlchemy pool that they take "
            "connections from holds %d (pool_size=%d, max_overflow=%d): those beyond wait up to "
            "%g s for one and then fail. Give the worker concurrency=%d, or "
            "create_engine(pool_size=%d)",
            concurrency,
            most,
            pool.size(),
            pool._max_overflow,
            pool._timeout,
            most,
            concurrency,
        )


def _most(pool: Any) -> int | None:
    """How many connections it gives out at a time; None: any number, or it is the worker's own."""
    size, overflow = getattr(pool, "size", None), getattr(pool, "_max_overflow", -1)
    if not callable(size) or not size() or overflow < 0 or pool.logging_name == OWN_POOL:
        return None
    return int(size()) + int(overflow)
