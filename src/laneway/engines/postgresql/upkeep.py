"""upkeep: periodic maintenance, by anyone, one at a time; it remembers where live leases begin."""

import time
from datetime import datetime

from laneway.model import UpkeepReport
from laneway.plan import Plan

from .base import PostgresqlSql

_UPKEEP_LIMIT = 1000
_LEFT_SECONDS = 0.5
_COUNT_LIMIT = 20_000
_FULL_LEASE_SCAN_EVERY = 60.0


class PostgresqlUpkeep:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql
        self._lease_floor: datetime | None = None
        self._full_lease_scan_at = 0.0
        self._life: int | None = None

    def _note_life(self, life: int) -> None:
        """In another life of the server the floor may not be true; the database ignores it."""
        if life != self._life:
            self._life = life
            self._lease_floor = None

    def upkeep(self) -> Plan[UpkeepReport]:
        if time.monotonic() >= self._full_lease_scan_at:
            # The lease of a claim whose commit took longer than the lease is behind the floor.
            self._full_lease_scan_at = time.monotonic() + _FULL_LEASE_SCAN_EVERY
            self._lease_floor = None
        rows = yield self._sql.statement_now("upkeep", _UPKEEP_LIMIT, self._lease_floor, self._life)
        ran, expired, buried, lapsed, tidied, partitioned, floor, life = rows[0]
        self._note_life(life)
        if not ran:
            return UpkeepReport(ran=False)
        self._lease_floor = floor
        until = time.monotonic() + _LEFT_SECONDS
        while tidied and time.monotonic() < until:
            # Ends of nodes that decide many children go on in transactions of their own.
            if not (yield self._sql.statement_now("decide_left"))[0][0]:
                break
        yield self._sql.statement_now("count", _COUNT_LIMIT)
        return UpkeepReport(True, expired, buried, lapsed, tidied, partitioned)
