"""What operators look at: messages in any state, the history, totals."""

import json
from datetime import datetime

from laneway.engines.times import moment
from laneway.inspection import HistoryPage, MessageInfo, Totals, read_position
from laneway.plan import Plan, Row

from .base import repeatable
from .names import text
from .stats import entry_of
from .upkeep.cleanup import MysqlHistoryOrder


class MysqlInspect(MysqlHistoryOrder):
    @repeatable
    def message(self, message_id: int) -> Plan[MessageInfo | None]:
        rows = yield self._statement("message", message_id, self._now())
        return message_info(rows[0]) if rows else None

    @repeatable
    def payload(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._statement("payload", message_id)
        return bytes(rows[0][0]) if rows else None

    @repeatable
    def saved_state(self, message_id: int) -> Plan[bytes | None]:
        rows = yield self._statement("saved_state", message_id)
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    @repeatable
    def history_since(self, position: str | None, limit: int) -> Plan[HistoryPage]:
        """Stamps what is committed first, so that readers need not wait for upkeep."""
        stamp = yield from self._stamp_history()
        if position is None:
            return HistoryPage([], f"{stamp + 1}.0")
        rows = yield self._statement("history_since", *read_position(position, 2), limit)
        if not rows:
            return HistoryPage([], position)
        return HistoryPage([entry_of(row[1:]) for row in rows], f"{rows[-1][0]}.{rows[-1][1]}")

    @repeatable
    def totals(self) -> Plan[Totals]:
        tables = [f"{self.schema}_{name}".encode() for name in ("message", "history")]
        rows = yield self._statement("totals", tables)
        counts = {text(name): int(count or 0) for name, count in rows}
        return Totals(*(counts[text(name)] for name in tables))

    @repeatable
    def clock(self) -> Plan[datetime]:
        rows = yield self._statement("clock", self._now())
        return moment(rows[0][0])


def message_info(row: Row) -> MessageInfo:
    """From a row of the statement message."""
    id, queue, channel, kind, key, state, priority, due, published, first, expires, *rest = row
    attempt, most, content_type, headers, size, fence, worker, claimed, until, *dead = rest
    died_at, reason, error_type, error, *trace = dead
    return MessageInfo(
        id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        text(key),
        text(state),  # type: ignore[arg-type]
        priority,
        moment(due),
        moment(published),
        moment(first),
        moment(expires),
        attempt,
        most,
        text(content_type) or "",
        json.loads(headers) if headers else {},
        size,
        fence,
        text(worker),
        moment(claimed),
        moment(until),
        moment(died_at),
        text(reason),
        text(error_type),
        text(error),
        text(trace[0]) if trace else None,
    )
