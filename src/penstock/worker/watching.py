"""Who wants to know what the worker does; metrics do."""

from typing import Literal, Protocol

from penstock.model import Answer

from .job import Job
from .outcomes import Complete, Defer, Fail, GiveBack, Outcome

Ending = Literal["completed", "deferred", "retried", "failed", "given_back", "left"]


class Watcher(Protocol):
    """Told in passing: it must be quick and must not raise."""

    def claimed(self, messages: int, answer: Answer, seconds: float) -> None: ...

    def ended(self, job: Job, ending: Ending, seconds: float) -> None:
        """A handler has ended after so many seconds, and this is what its message gets."""
        ...

    def lost(self, job: Job) -> None: ...


def ending_of(outcome: Outcome) -> Ending:
    if isinstance(outcome, Complete):
        return "completed"
    if isinstance(outcome, Defer):
        return "deferred" if outcome.error is None and outcome.reason is None else "retried"
    if isinstance(outcome, Fail):
        return "failed"
    return "given_back" if isinstance(outcome, GiveBack) else "left"
