"""Not asking the database more often than is useful."""

import time
from datetime import timedelta


class Pace:
    """Spark asks a stream a hundred times a second whether there is more; a look that found nothing
    holds for ``every``."""

    def __init__(self, every: timedelta) -> None:
        self._every = every.total_seconds()
        self._next = 0.0

    def wait(self) -> None:
        """Returns at once, unless the last look was empty and recent."""
        time.sleep(max(0.0, self._next - time.monotonic()))

    def found(self, anything: bool) -> None:
        self._next = 0.0 if anything else time.monotonic() + self._every
