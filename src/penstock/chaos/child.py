"""What the processes of a run have in common: how they begin, and how they end with it."""

import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from .stage import Stage

HANDED_OVER = "PENSTOCK_CHAOS_STAGE"

_stopping = threading.Event()


def handed_over() -> str:
    """The stage, as the crew wrote it: not an argument, which everybody could read."""
    return os.environ[HANDED_OVER]


def begin(text: str) -> Stage:
    """Reads the stage, and ends this process when the one that started it is gone."""
    keep_quiet()
    threading.Thread(target=_follow_parent, daemon=True).start()
    stage = Stage(**json.loads(text))
    if stage.skew:
        _set_clock_wrong(stage.skew)
    return stage


def keep_quiet() -> None:
    """Failures are what a run is made of, and the verdict speaks of them."""
    for name in ("penstock", "psycopg"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def stop_on_sigterm() -> threading.Event:
    signal.signal(signal.SIGTERM, lambda *_: _stopping.set())
    return _stopping


def _follow_parent() -> None:
    """The other end of stdin closes when the parent ends, however it ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _set_clock_wrong(seconds: float) -> None:
    right: Any = time.time
    time.time = lambda: right() + seconds
