"""What a claim returns.

One claim for several callers: to each its share.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TypeVar, overload

from laneway.drivers.errors import LOCK_TIMEOUTS
from laneway.errors import DatabaseFailed
from laneway.model import ClaimStatus
from laneway.plan import Taken

_log = logging.getLogger("laneway")

_BUSY_FOR = timedelta(milliseconds=100)

M = TypeVar("M")


class Claim(Sequence[M]):
    """The claimed messages, why there are not more, and when to look again.

    ``look_again`` is None if nothing is known to come, and zero if more may be there at once.

    >>> claim = queue.claim(limit=10)
    >>> if not claim and claim.status is ClaimStatus.BLOCKED: ...
    """

    __slots__ = ("_messages", "look_again", "status")

    def __init__(
        self, messages: Sequence[M], status: ClaimStatus, look_again: timedelta | None
    ) -> None:
        self._messages = messages
        self.status = status
        self.look_again = look_again

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[M]:
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[M]: ...
    def __getitem__(self, index: int | slice) -> M | Sequence[M]:
        return self._messages[index]

    def __repr__(self) -> str:
        return f"<Claim of {len(self)}: {self.status}, look again in {self.look_again}>"


def busy_if_locked(error: DatabaseFailed) -> Taken:
    """What a claim answers that waited for a lock in vain: somebody keeps a transaction open, and
    the claim can be made again. Raises any other error."""
    if error.sqlstate not in LOCK_TIMEOUTS:
        raise error
    _log.warning("claim timed out on a row lock held by another session: %s", error)
    return Taken((), ClaimStatus.BUSY, _BUSY_FOR, None, None)


def distribute(taken: Taken, limits: Sequence[int]) -> list[Taken]:
    """First come, first served, up to each one's limit.

    Who gets nothing while others got something is told to look again at once: only a claim of its
    own can say whether the rest is empty or blocked.
    """
    if len(limits) == 1:
        return [taken]
    shares, start = [], 0
    for limit in limits:
        rows = taken.rows[start : start + limit]
        start += limit
        if taken.rows and not rows:
            shares.append(Taken((), ClaimStatus.BUSY, timedelta(0), None, None))
        else:
            shares.append(taken._replace(rows=rows))
    return shares
