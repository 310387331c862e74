"""What operators inspect: a message in any state, history, totals."""

from datetime import datetime

from laneway.engines.times import moment
from laneway.inspection import (
    HistoryPage,
    MessageInfo,
    Totals,
    read_position,
)
from laneway.plan import Plan

from .operate.messages import SqliteMessages, read_message
from .operate.stats import SqliteStats, read_entry


class SqliteInspect(SqliteStats, SqliteMessages):
    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._read_outside("message", message_id, self._now())
        return read_message(rows[0]) if rows else None

    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._read_outside("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._read_outside("saved_state", message_id)
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """Ids rise in commit order, so the last one is the position."""
        if position is None:
            totals = yield from self.totals()
            return HistoryPage([], str(totals.ended))
        rows = yield self._read_outside("history_since", *read_position(position, 1), limit)
        last = str(rows[-1][0]) if rows else position
        return HistoryPage([read_entry(row) for row in rows], last)

    def totals(self) -> Plan[Totals]:
        rows = yield self._read_outside("totals", f"{self.schema}_history")
        return Totals(*rows[0])

    def clock(self) -> Plan[datetime]:
        """The machine's clock. (A plan must have a statement; this one is cheap.)"""
        yield self._read_outside("settings")
        return moment(self._now())
