"""Pauses of channels, kinds and whole queues, for a time or until resumed, with their ledger.

``pause_set`` is written when the pause is certainly in force; ``resume_tried`` before it can end.
"""

from datetime import timedelta
from typing import NamedTuple

from laneway import Queue

from .config import MANUAL, PAUSABLE, PAUSABLE_KIND, WORK, channel
from .ledger import Ledger


class PauseScope(NamedTuple):
    """What is paused: a channel, a kind, or with neither of them the whole queue."""

    queue: str
    kind: str | None = None
    channel: str | None = None


SCOPES = [
    scope
    for queue in (WORK, MANUAL)
    for scope in (
        PauseScope(queue, channel=channel(PAUSABLE, queue)),
        PauseScope(queue, kind=PAUSABLE_KIND),
        PauseScope(queue),
    )
]


def pause(queue: Queue, ledger: Ledger, scope: PauseScope, seconds: float | None) -> None:
    terms = scope._asdict()
    ledger.record("pause_tried", seconds=seconds, **terms)
    length = None if seconds is None else timedelta(seconds=seconds)
    if scope.channel is not None:
        queue.channel(scope.channel, queue=scope.queue).pause(length)
    else:
        queue.pause(queue=scope.queue, kind=scope.kind, duration=length)
    ledger.record("pause_set", seconds=seconds, **terms)


def resume(queue: Queue, ledger: Ledger, scope: PauseScope) -> None:
    ledger.record("resume_tried", **scope._asdict())
    if scope.channel is not None:
        queue.channel(scope.channel, queue=scope.queue).resume()
    else:
        queue.resume(queue=scope.queue, kind=scope.kind)
    ledger.record("resumed", **scope._asdict())
