"""Observers are told what a worker does; metrics are one."""

from typing import Literal, Protocol

from laneway.client.shared.checks import check_list
from laneway.errors import InvalidOption, shown
from laneway.model import ClaimStatus, Settled
from laneway.worker.job import Job
from laneway.worker.outcomes import Cancel, Complete, Defer, Fail, GiveBack, Outcome, Throttled

OutcomeName = Literal[
    "completed", "deferred", "retried", "failed", "cancelled", "given_back", "lost", "left"
]


class Observer(Protocol):
    """Called from the event loop: must be quick and must not raise."""

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        """A handler has ended after ``seconds``, and this outcome is to be written."""
        ...

    def lost(self, job: Job) -> None: ...

    def settled(self, job: Job, result: Settled | None) -> None:
        """Once for each message, when nothing more is written for it; None if the database gave
        no result. ``settled_name`` says what became of it."""
        ...


_METHODS = ("claimed", "ended", "lost", "settled")


def checked_observers(values: object) -> tuple[Observer, ...]:
    """Refused now, not by an AttributeError at the first message."""
    observers = tuple(check_list("observers", values))
    for observer in observers:
        missing = [name for name in _METHODS if not callable(getattr(observer, name, None))]
        if isinstance(observer, type) or missing:
            raise InvalidOption(
                f"{shown(observer)} is not an observer: it must be an object with the methods "
                f"{', '.join(_METHODS)}"
            )
    return observers


def outcome_name(outcome: Outcome) -> OutcomeName:
    if isinstance(outcome, Complete):
        return "completed"
    if isinstance(outcome, Defer):
        return "deferred" if outcome.error is None and outcome.reason is None else "retried"
    if isinstance(outcome, Fail):
        return "failed"
    if isinstance(outcome, Cancel):
        return "cancelled"
    return "given_back" if isinstance(outcome, GiveBack | Throttled) else "left"


def settled_name(intended: OutcomeName, answer: Settled | None) -> OutcomeName:
    """What became of a message: as the database answered, to the worker or to the handler itself;
    without an answer as it was intended."""
    if answer is None or answer.status == "extended":
        return intended
    if answer.status == "failed" or answer.status == "dead":
        return "failed"
    if answer.status == "deferred":
        return "retried" if intended == "retried" else "deferred"
    return answer.status
