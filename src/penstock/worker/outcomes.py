"""What becomes of a message after its handler."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.client.settlement import Error
from penstock.model import KEEP, Keep


class Defer(Exception):
    """Return or raise it in a handler: the message waits and is handled again later.

    Without a reason or an error it is progress; with one it is a failed try and counts.

    >>> return Defer(timedelta(minutes=5), state={"page": 7})
    """

    def __init__(
        self,
        delay: timedelta | None = None,
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
    """Return or raise it in a handler: the message is given up and becomes a dead letter.

    >>> raise Fail("no such customer")
    """

    def __init__(self, reason: str = "failed", *, error: Error = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


@dataclass(frozen=True, slots=True)
class Complete:
    """The work is done."""


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The work was not done, and nobody is to blame."""

    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing to write: it is settled already, or the lease is not ours."""


Outcome = Complete | Defer | Fail | GiveBack | Leave

COMPLETE = Complete()
LEAVE = Leave()
GIVE_BACK = GiveBack()
