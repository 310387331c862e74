"""What the processes of a run have in common: how they start, and that they end with the run."""

import json
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from laneway.client.sync import dead_letters

from .config import PART, RunConfig

CONFIG_VARIABLE = "LANEWAY_CHAOS_CONFIG"

_stopping = threading.Event()


def config_text() -> str:
    """The config as JSON. Not an argument: other users could read its password there."""
    return os.environ[CONFIG_VARIABLE]


def begin(text: str) -> RunConfig:
    """Reads the config, and exits when the process that started this one is gone."""
    silence_logging()
    use_small_parts()
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    config = RunConfig(**json.loads(text))
    if config.skew:
        _shift_clock(config.skew)
    return config


def use_small_parts() -> None:
    """Of bulk operations, which have few letters here: faults come between two parts."""
    vars(dead_letters)["CHUNK"] = PART


def silence_logging() -> None:
    """Failures are intended here, and the verdict reports them."""
    for name in ("laneway", "psycopg"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def stop_on_sigterm() -> threading.Event:
    signal.signal(signal.SIGTERM, lambda *_: _stopping.set())
    return _stopping


def _exit_with_parent() -> None:
    """The other end of stdin is closed when the parent ends, however it ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _shift_clock(seconds: float) -> None:
    right: Any = time.time
    time.time = lambda: right() + seconds
