"""The worker's own clock: monotonic, and it goes on while the machine or the process is stopped."""

import time

if hasattr(time, "CLOCK_BOOTTIME"):  # Linux: counts the time of a suspended machine too

    def now() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:

    def now() -> float:
        return time.monotonic()
