"""How long, how much, and over how many channels."""

from dataclasses import dataclass

QUEUE = "soak"
SCHEMA = "laneway"
URL = "LANEWAY_SOAK_URL"  # in the environment of the workers
BURST_EVERY = 20.0  # seconds
BURST_LENGTH = 2.0
BURST = 4.0  # times the rate
HISTORY_DAYS = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """``interval`` is between two lines. An old snapshot is held in the middle third."""

    minutes: float = 10.0
    rate: float = 200.0
    channels: int = 10_000
    workers: int = 2
    interval: float = 0.0

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def step(self) -> float:
        return self.interval or max(1.0, self.seconds / 24)

    def rate_at(self, second: float) -> float:
        """Messages a second: steady, with a burst now and then."""
        return self.rate * (BURST if second % BURST_EVERY < BURST_LENGTH else 1.0)

    def snapshot_held(self, second: float) -> bool:
        return self.seconds / 3 <= second < self.seconds * 2 / 3
