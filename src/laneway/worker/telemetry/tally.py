"""What became of a worker's messages, for the last line of its log."""

from collections import Counter

from laneway.model import ClaimStatus, Settled, SettleStatus
from laneway.worker.job import Job

from .observer import OutcomeName

# By what was answered; the first two are always said.
_WORDS: dict[SettleStatus, str] = {
    "completed": "completed",
    "given_back": "given back",
    "deferred": "deferred or to be retried",
    "failed": "dead-lettered",
    "dead": "dead-lettered",
    "cancelled": "cancelled",
    "lost": "lost to another worker",
}
_ALWAYS = ("completed", "given back")


class Tally:
    """An observer."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None: ...

    def lost(self, job: Job) -> None: ...

    def settled(self, job: Job, result: Settled | None) -> None:
        answer = result or job.own_result
        if answer is not None and answer.status in _WORDS:
            self._counts[_WORDS[answer.status]] += 1

    def __str__(self) -> str:
        words = dict.fromkeys([*_ALWAYS, *_WORDS.values()])
        said = {word: self._counts[word] for word in words}
        return ", ".join(f"{n} {word}" for word, n in said.items() if n or word in _ALWAYS)
