"""claim and upkeep: the verbs that remember where the live part of their tables begins."""

import json
import time
from datetime import UTC, datetime, timedelta

from penstock.contract import Taken
from penstock.model import Answer, UpkeepReport
from penstock.plan import Plan

from .base import Base, Clock

_QUANTUM = 10
_UPKEEP_LIMIT = 1000
# Seconds. The floors are exact; a scan from the left is only for a clock that was set back, and
# it is what an old snapshot makes dear, so it is rare.
_FULL_SCAN_EVERY = 60.0
_FULL_LEASE_SCAN_EVERY = 60.0


class Claiming(Base):
    def __init__(self, schema: str = "penstock", clock: Clock | None = None) -> None:
        super().__init__(schema, clock)
        # Floors only save work: an older one, or none, is always right too.
        self._floors: dict[tuple[str, ...], str] = {}
        self._full_scan_at: dict[tuple[str, ...], float] = {}
        self._lease_floor: datetime | None = None
        self._full_lease_scan_at = 0.0

    def claim(
        self, queues: tuple[str, ...], limit: int, lease: timedelta, worker: str
    ) -> Plan[Taken]:
        floors = self._floors_of(queues)
        rows = yield self._say_now("claim", list(queues), limit, lease, worker, _QUANTUM, floors)
        answer, claimed_at, until, look_again, self._floors[queues] = json.loads(rows[-1][-1])
        return Taken(
            rows[:-1],
            Answer(answer),
            None if look_again is None else timedelta(seconds=look_again),
            _time(claimed_at),
            _time(until),
        )

    def _floors_of(self, queues: tuple[str, ...]) -> str | None:
        """None every so often: a scan from the left heals what a clock that was set back hid."""
        now = time.monotonic()
        if now < self._full_scan_at.get(queues, 0):
            return self._floors.get(queues)
        self._full_scan_at[queues] = now + _FULL_SCAN_EVERY
        return None

    def upkeep(self) -> Plan[UpkeepReport]:
        if time.monotonic() >= self._full_lease_scan_at:
            # A claim whose commit took longer than its lease is behind the floor.
            self._full_lease_scan_at = time.monotonic() + _FULL_LEASE_SCAN_EVERY
            self._lease_floor = None
        rows = yield self._say_now("upkeep", _UPKEEP_LIMIT, self._lease_floor)
        ran, expired, buried, lapsed, tidied, partitioned, floor = rows[0]
        if not ran:
            return UpkeepReport(ran=False)
        self._lease_floor = floor
        return UpkeepReport(True, expired, buried, lapsed, tidied, partitioned)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
