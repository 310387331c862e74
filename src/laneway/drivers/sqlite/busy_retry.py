"""Retry while another connection holds SQLite's lock."""

import random
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds. Our write transactions take milliseconds: whoever holds the lock for a minute is stuck.
BUSY_TIMEOUT = 60.0
_INITIAL_DELAY = 0.0005
_MAX_DELAY = 0.003

_BUSY = 5
_LOCKED = 6


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection held a lock; the statement did nothing."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (_BUSY, _LOCKED)


def retry_while_busy(action: Callable[[], T], timeout: float = BUSY_TIMEOUT) -> T:
    """Retries with growing random delays while another connection holds the lock.

    Only for actions that change nothing when they fail: the begin of a transaction, or a read
    outside of one.
    """
    end = time.monotonic() + timeout
    delay = _INITIAL_DELAY
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
        time.sleep(delay * random.uniform(0.5, 1.5))
        delay = min(1.5 * delay, _MAX_DELAY)
