"""The clock of a case: it moves when the case says so."""

from datetime import UTC, datetime, timedelta


class HandClock:
    """Starts at the real time, because a database's views read its own clock."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> datetime:
        """Lets time pass; only forwards, as clocks of databases do."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self.now += timedelta(seconds=seconds)
        return self.now
