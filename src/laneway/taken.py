"""What a claim answers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from .model import ClaimStatus
from .plan import Row


class Taken(NamedTuple):
    """What a claim answered; ``claimed_at`` and ``until`` hold for all its leases.

    A row is: id, fence, queue, channel, kind, priority, attempt, max_attempts, due, published_at,
    first_published_at, expires_at (these four as seconds since 1970), key, content_type, headers
    (JSON text), state_type, state, payload, spent (tries that failed since the last progress);
    more columns may follow.
    """

    rows: Sequence[Row]
    status: ClaimStatus
    look_again: timedelta | None
    claimed_at: datetime | None
    until: datetime | None
    paused: Mapping[tuple[str, str], timedelta] = MappingProxyType({})
    """Kinds of these queues that are paused, by queue and kind, and for how long to put their
    messages back. ``laneway.engines.kind_pauses`` does that, so that a claim answers none."""
