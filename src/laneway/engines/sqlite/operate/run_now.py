"""run_now: scheduled messages become due now."""

from collections.abc import Sequence
from typing import Any

from laneway.engines.sqlite.base import listed
from laneway.engines.sqlite.channel_rows import CountChanges
from laneway.engines.sqlite.settle.end import SqliteSettleEnd
from laneway.model import MadeDue
from laneway.plan import Plan


class SqliteRunNow(SqliteSettleEnd):
    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        state = yield from self._begin_write(turns=len(ids))
        rows = yield self._statement("message_states", listed(ids))
        found: dict[int, Any] = {row[0]: row[1] for row in rows}
        rows = yield self._statement("waiting_messages", listed(ids))
        found |= dict.fromkeys((row[3] for row in rows), "waiting")
        parked = {row[0] for row in (yield self._statement("behind_others", listed(ids)))}
        later = [row for row in rows if row[2] > state.now and row[3] not in parked]
        made_due = [row[3] for row in later]
        if later:
            yield self._many("delete_waiting", later)
            yield from self._no_longer_waiting(made_due, state)
            yield self._statement("make_due", listed(made_due), state.now)
            yield self._statement("add_waiting_again", listed(made_due))
            yield from self._now_waiting(made_due, state)
            changes = CountChanges()
            for channel_id, priority, *_ in later:
                changes.add(channel_id, priority=priority, due=state.now)
            yield from self._update_counts(changes, state)
        found |= dict.fromkeys(made_due, "due")
        return [MadeDue(id, found.get(id, "absent")) for id in ids]
