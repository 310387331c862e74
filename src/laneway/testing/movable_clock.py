"""The clock of a test, which moves days in milliseconds."""

from datetime import UTC, datetime, timedelta

from laneway.clock import ProcessClock
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidTime, shown


class MovableClock:
    """The time for all clients and workers of this process, until ``reset()``. It goes on by itself
    from where it was moved to.

    >>> clock.move(timedelta(days=3))
    """

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def move(self, by: Duration) -> datetime:
        """Lets time pass, forwards; workers of this process look at once what is due. Answers the
        new time."""
        self._ahead += check_duration("by", by)
        ProcessClock.set(self.now)
        return self.now()

    def move_to(self, moment: datetime) -> datetime:
        """The same, to a time in the future.

        >>> clock.move_to(datetime(2030, 1, 1, tzinfo=UTC))
        """
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise InvalidTime(f"{shown(moment)} is not a datetime with a time zone")
        by = moment - self.now()
        if by < timedelta(0):
            raise InvalidTime(f"it is {self.now()} already: the clock moves forwards only")
        return self.move(by)

    def reset(self) -> None:
        """Back to the real time. What was published meanwhile keeps its times: empty the queue. The
        plugin does both between tests."""
        self._ahead = timedelta(0)
        ProcessClock.set(None)


clock = MovableClock()
"""The only one of the process."""
