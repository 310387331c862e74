"""Observers are told what a worker does; metrics are one."""

from typing import Literal, Protocol

from laneway.client.shared.checks import check_list
from laneway.errors import InvalidOption, shown
from laneway.model import ClaimStatus, Settled
from laneway.worker.job import Job
from laneway.worker.outcomes import Cancel, Complete, Defer, Fail, GiveBack, Outcome, Throttled

OutcomeName = Literal[
    "completed", "deferred", "retried", "failed", "cancelled", "given_back", "left"
]


class Observer(Protocol):
    """Called from the event loop: must be quick and must not raise."""

    def claimed(self, messages: int, status: ClaimStatus, seconds: float) -> None: ...

    def ended(self, job: Job, outcome: OutcomeName, seconds: float) -> None:
        """A handler has ended after ``seconds``, and its message gets this outcome."""
        ...

    def lost(self, job: Job) -> None: ...

    def settled(self, job: Job, result: Settled | None) -> None:
        """Nothing more is written for the message; None if the database gave no result."""
        ...


_METHODS = ("claimed", "ended", "lost", "settled")


def checked_observers(values: object) -> tuple[Observer, ...]:
    """Refused now, not by an AttributeError at the first message."""
    observers = tuple(check_list("observers", values))
    for observer in observers:
        missing = [name for name in _METHODS if not callable(getattr(observer, name, None))]
        if isinstance(observer, type) or missing:
            raise InvalidOption(
                f"{shown(observer)} is no observer: it must be an object with the methods "
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
