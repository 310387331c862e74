"""Whether a message is still ours to begin: by our own clock, and if that says no by asking; and
for how long it is kept then."""

from contextlib import suppress

from penstock.errors import PenstockError

from .clock import now
from .hand import Hand
from .job import Job
from .pulse import Pulse


class Tenure:
    def __init__(self, pulse: Pulse, hand: Hand) -> None:
        self._pulse = pulse
        self._hand = hand

    def limit(self, job: Job, seconds: float) -> None:
        """Its handler begins: what does not even let itself be timed out loses its lease then."""
        self._pulse.bound(job, now() + seconds)

    async def lasts(self, job: Job) -> bool:
        """To be asked after every wait before a handler begins: we may have been stopped in it."""
        if job.deadline > now():
            return True
        self._pulse.refresh(job)
        if job.deadline > now():
            return True
        with suppress(PenstockError):
            answers = await self._hand.extend([job])
            return not answers[0].lost
        return False
