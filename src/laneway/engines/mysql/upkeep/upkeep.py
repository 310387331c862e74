"""upkeep: periodic maintenance. One session at a time does it; others return at once."""

import time

from laneway.engines.mysql.base import Clock, repeatable
from laneway.engines.mysql.claim.channel import PARKED
from laneway.engines.mysql.operate.control_cleanup import MysqlControlCleanup
from laneway.engines.mysql.operate.fold import MysqlFold
from laneway.engines.mysql.operate.workers import MysqlWorkers
from laneway.engines.mysql.settle.lease import MysqlLeases
from laneway.engines.mysql.settle.once import MysqlOnce
from laneway.model import UpkeepReport
from laneway.plan import Plan

from .cleanup import MysqlCleanup, MysqlHistoryOrder
from .expire import MysqlExpire, UpkeepSettings

_LIMIT = 1_000
_FULL_LEASE_SCAN_EVERY = 60.0  # seconds


class MysqlUpkeep(
    MysqlExpire,
    MysqlCleanup,
    MysqlOnce,
    MysqlControlCleanup,
    MysqlFold,
    MysqlHistoryOrder,
    MysqlWorkers,
    MysqlLeases,
):
    def __init__(self, schema: str = "laneway", clock: Clock | None = None) -> None:
        super().__init__(schema, clock)
        self._lease_floor = -PARKED
        self._full_lease_scan_at = 0.0

    @repeatable
    def upkeep(self) -> Plan[UpkeepReport]:
        if not (yield self._statement("try_lock_task", b"upkeep")):
            return UpkeepReport(ran=False)
        rows = yield self._statement("upkeep_settings", self._now())
        settings = UpkeepSettings(*rows[0])
        self._reset_lease_floor(settings.now)
        yield from self._fold(settings.now, bytes(settings.history))
        done = yield from self._expire(self._lease_floor, _LIMIT, settings)
        lapsed = yield from self._lapse(settings.now, _LIMIT)
        strays = yield from self._settle_strays(settings.now)
        tidied, forgotten = yield from self._clean_up(settings.now, settings.history_days, _LIMIT)
        tidied += yield from self._delete_expired_once(settings.now, _LIMIT)
        tidied += yield from self._clean_up_control(settings.now, _LIMIT)
        tidied += yield from self._forget_workers(settings.now)
        tidied += yield from self._delete_expired_results(settings.now, _LIMIT)
        tidied += yield from self._delete_old_progress(settings.now, _LIMIT)
        stamp = yield from self._stamp_history()
        yield from self._save_fold_end(stamp, settings.now)
        self._lease_floor = done.floor
        report = (done.expired, done.buried, lapsed, strays + tidied, forgotten)
        return UpkeepReport(True, *report)

    def _reset_lease_floor(self, now: int) -> None:
        """Once a minute: a claim whose commit took longer than its lease is below the floor."""
        if time.monotonic() >= self._full_lease_scan_at or self._lease_floor > now:
            self._full_lease_scan_at = time.monotonic() + _FULL_LEASE_SCAN_EVERY
            self._lease_floor = -PARKED
