"""Outcomes: what happens to a message after its handler, and which tracebacks are kept."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from laneway.client.shared.error_text import said, traceback_text
from laneway.client.shared.settle_items import Error
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, shown
from laneway.model import KEEP, Keep
from laneway.shared_limits import check_limit_name
from laneway.spelling import explains_call


class Defer(Exception):
    """Return or raise it in a handler: the message is handled again later.

    Without a reason or an error this is progress; with one it counts as a failed attempt.

    >>> return Defer(timedelta(minutes=5), state={"page": 7})
    """

    @explains_call
    def __init__(
        self,
        delay: Duration | None = None,
        *,
        at: datetime | None = None,
        state: object | Keep = KEEP,
        reason: str | None = None,
        error: Error = None,
    ) -> None:
        super().__init__(reason or "deferred")
        self.delay = delay
        self.at = at
        self.state = state
        self.reason = reason
        self.error = error


class Fail(Exception):
    """Return or raise it in a handler: the message becomes a dead letter.

    >>> raise Fail("no such customer")
    """

    @explains_call
    def __init__(self, reason: str = "failed", *, error: Error = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class Throttled(Exception):
    """Return or raise it in a handler when whoever does the work asks you to slow down: its channel
    starts nothing for ``retry_after``, and the message is put back, without a counted attempt. With
    ``limit`` it is not the channel but everything behind that shared limit.

    >>> raise Throttled(retry_after=30)
    >>> raise Throttled(retry_after=30, limit="stripe")
    """

    @explains_call
    def __init__(self, retry_after: Duration, *, limit: str | None = None) -> None:
        self.retry_after = check_duration("retry_after", retry_after)
        self.limit = None if limit is None else check_limit_name(limit)
        super().__init__(f"retry after {self.retry_after.total_seconds():g} s")


@dataclass(frozen=True, slots=True)
class Complete:
    """The work is done. With ``keep``, what the handler returned is kept for so long."""

    keep: timedelta | None = None
    result: object = None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The work was not done, and no attempt is counted."""

    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """An operator asked for it: the message ends, whatever its handler got done."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing to write: the message is settled already, or its lease is not ours."""


Outcome = Complete | Defer | Fail | Throttled | GiveBack | Cancel | Leave

COMPLETE = Complete()
LEAVE = Leave()
CANCEL = Cancel()
GIVE_BACK = GiveBack()

# Which tracebacks a worker keeps with its dead letters, and what it hides in them.

_log = logging.getLogger("laneway.worker")

TracebackRule = Literal["keep", "none"] | Callable[[str], str]
"""Keep it, do not, or a function that returns what is kept of its text."""


def checked_rule(rule: object) -> TracebackRule:
    if rule == "keep" or rule == "none" or callable(rule):
        return rule
    raise InvalidOption(f'traceback must be "keep", "none" or a function, not {shown(rule)}')


def kept_traceback(rule: TracebackRule, error: str | BaseException | None) -> str | None:
    if rule == "none":
        return None
    text = traceback_text(error)
    if text is None or rule == "keep":
        return text
    try:
        kept = rule(text)
    except Exception as failure:  # rather no traceback than one with a secret
        _log.error("the function for tracebacks failed: %s", said(failure))
        return None
    return kept if isinstance(kept, str) else None
