"""upkeep: what time brings, whoever runs it. One at a time works, the others answer at once."""

import time
from typing import NamedTuple

from penstock.model import UpkeepReport
from penstock.plan import Plan

from .base import Clock
from .expiring import Expiring
from .once import Once
from .repeating import repeatable
from .stamping import Stamping
from .tidying import Tidying
from .visits import PARKED

_LIMIT = 1_000
_FULL_LEASE_SCAN_EVERY = 60.0  # seconds


class Circumstances(NamedTuple):
    """The columns of upkeep_settings.sql."""

    now: int
    history: bytes
    history_days: int
    backoff_first: int
    backoff_most: int


class Upkeep(Expiring, Tidying, Once, Stamping):
    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        super().__init__(schema, clock)
        self._lease_floor = -PARKED
        self._full_lease_scan_at = 0.0

    @repeatable
    def upkeep(self) -> Plan[UpkeepReport]:
        if not (yield self._say("turnstile", b"upkeep")):
            return UpkeepReport(ran=False)
        rows = yield self._say("upkeep_settings", self._now())
        found = Circumstances(*rows[0])
        self._see_all_leases(found.now)
        done = yield from self._expire(self._lease_floor, _LIMIT, found)
        lapsed = yield from self._lapse(found.now, _LIMIT)
        strays = yield from self._settle_strays(found.now)
        tidied, forgotten = yield from self._tidy(found.now, found.history_days, _LIMIT)
        tidied += yield from self._forget_done(found.now, _LIMIT)
        yield from self._stamp()
        self._lease_floor = done.floor
        report = (done.expired, done.buried, lapsed, strays + tidied, forgotten)
        return UpkeepReport(True, *report)

    def _see_all_leases(self, now: int) -> None:
        """A claim whose commit took longer than its lease is behind the floor."""
        if time.monotonic() >= self._full_lease_scan_at or self._lease_floor > now:
            self._full_lease_scan_at = time.monotonic() + _FULL_LEASE_SCAN_EVERY
            self._lease_floor = -PARKED
