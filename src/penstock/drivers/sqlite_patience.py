"""Waiting for SQLite's locks: neither spinning nor giving up early."""

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds. A write transaction of ours takes milliseconds; who holds the lock for a minute is stuck.
PATIENCE = 60.0
_FIRST = 0.0005
_MOST = 0.003

_BUSY = 5
_LOCKED = 6


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held a lock; nothing was done then."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (_BUSY, _LOCKED)


def patiently(act: Callable[[], T], patience: float = PATIENCE) -> T:
    """Tries again, a little later each time and at random, while another one holds the lock.

    Only for what does nothing if it fails: the begin of a transaction, or a read outside of one.
    """
    end = time.monotonic() + patience
    step = _FIRST
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
        time.sleep(step * random.uniform(0.5, 1.5))
        step = min(1.5 * step, _MOST)
