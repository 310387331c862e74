"""A part of upkeep: old rows of the audit, and pauses that have ended."""

from laneway.engines.mysql.base import MysqlBase
from laneway.plan import Plan


class MysqlControlCleanup(MysqlBase):
    def _clean_up_control(self, now: int, limit: int) -> Plan[int]:
        """Returns how many rows were deleted. Pauses that have ended hold nobody up; they are only
        removed from the list, and from the rows of channels."""
        rows = yield self._statement("control_to_delete", now, limit)
        pauses = [int(id) for table, id in rows if table == 0]
        audit = [int(id) for table, id in rows if table == 1]
        if pauses:
            yield self._statement("delete_pauses", pauses)
        if audit:
            yield self._statement("delete_audit", audit)
        if any(table == 2 for table, _ in rows):
            channels = yield self._statement("timed_channels", now, limit)
            if channels:
                yield self._statement("pause", [bytes(id) for (id,) in channels], False, None)
        return len(pauses) + len(audit)
