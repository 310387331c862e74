"""How many wrong tokens were given in the last minute, and when the next one is looked at.

Who has signed in is not asked for the token again, so guesses of others do not lock them out.
"""

import logging
import time
from collections import Counter, deque
from math import ceil
from threading import Lock

_log = logging.getLogger("laneway.web")

WINDOW = 60.0  # seconds
MOST_OF_ONE = 10
"""From one address; behind a proxy all have the same."""
MOST = 100
"""From all together, whatever addresses an attacker has."""


class Guesses:
    """Remembers no more than MOST of them."""

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque()
        self._lock = Lock()

    def wait(self, client: str | None) -> int:
        """For how many seconds no token from there is looked at; 0 if it is."""
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            mine = [at for at, other in self._wrong if other == client]
            if len(mine) >= MOST_OF_ONE:
                return ceil(mine[0] + WINDOW - now)
            return ceil(self._wrong[0][0] + WINDOW - now) if len(self._wrong) >= MOST else 0

    def add(self, client: str | None) -> None:
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            self._wrong.append((now, client or ""))
            count = Counter(other for _, other in self._wrong)[client or ""]
        _log.warning("a wrong token from %s, %d in the last minute", client or "a socket", count)
        if count == MOST_OF_ONE:
            _log.warning("no token from %s is looked at for a minute", client or "a socket")

    def _forget(self, now: float) -> None:
        while self._wrong and self._wrong[0][0] <= now - WINDOW:
            self._wrong.popleft()
