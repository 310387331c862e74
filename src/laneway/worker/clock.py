"""The worker's own clock, in seconds: monotonic, and it also counts the time in which the machine
was suspended or the process was stopped."""

import time
from collections.abc import Callable
from functools import partial

now: Callable[[], float]

if hasattr(time, "CLOCK_BOOTTIME"):  # Linux, where monotonic() stands still during a suspend
    now = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
else:
    now = time.monotonic
