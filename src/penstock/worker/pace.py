"""How much to claim ahead: what is likely to start before the next claim could bring it."""

from .clock import now

_HORIZON = 0.05  # seconds; many times a claim's round trip, and a small part of any lease
_WINDOW = 0.02
MOST_AHEAD = 1000


class Pace:
    """Measures how many messages end per second."""

    def __init__(self) -> None:
        self._ended = 0
        self._since = now()
        self._rate = 0.0

    def forget(self) -> None:
        """What was measured does not hold any more."""
        self._ended, self._since, self._rate = 0, now(), 0.0

    def ended(self) -> None:
        self._ended += 1

    def ahead(self) -> int:
        """How many messages to hold beyond those that can start at once."""
        moment = now()
        passed = moment - self._since
        if passed >= _WINDOW:
            rate = self._ended / passed
            self._rate = rate if rate > self._rate else (self._rate + rate) / 2
            self._ended, self._since = 0, moment
        return min(int(self._rate * _HORIZON), MOST_AHEAD)
