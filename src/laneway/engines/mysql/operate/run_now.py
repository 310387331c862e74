"""run_now: scheduled messages become due now.

Invariant: a message is claimed, cancelled or made due, one after the other, because each of these
locks its channel.
"""

from collections.abc import Sequence
from typing import Any

from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.publish.rows import WakeRow
from laneway.engines.mysql.settle.cancel import MysqlCancel, WaitingMessage
from laneway.model import MadeDue
from laneway.plan import Plan


class MysqlRunNow(MysqlCancel):
    @repeatable
    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        wanted = sorted(set(ids))
        rows = yield self._statement("message_channels", wanted)
        yield from self._lock_channels([(row[2], row[3]) for row in rows])
        rows = yield self._statement("waiting_messages", wanted, self._now())
        waiting = [WaitingMessage(*row) for row in rows]
        later = [message for message in waiting if message.due > message.now]
        if any(message.key is not None for message in later):
            rows = yield self._statement("behind_others", [message.id for message in later])
            parked = {int(row[0]) for row in rows}
            later = [message for message in later if message.id not in parked]
        if later:
            yield from self._leave_lanes(later)
            yield self._statement("make_due", [m.id for m in later], later[0].now)
            yield from self._insert("add_wakes", [wake for m in later for wake in _wakes(m)])
        status: dict[int, Any] = {message.id: "waiting" for message in waiting}
        status |= {message.id: "due" for message in later}
        if len(status) < len(wanted):
            others = [id for id in wanted if id not in status]
            rows = yield self._statement("message_states", others)
            status |= {int(id): _text(state) for id, state in rows}
        return [MadeDue(id, status.get(id, "absent")) for id in ids]


def _wakes(m: WaitingMessage) -> list[WakeRow]:
    """Its own wake counts it at the old time: one fewer just after that, and one more now."""
    names = m.queue, m.channel
    return [
        (m.due + 1, m.channel_id, m.due, m.id, -1, 0, m.priority, False, *names),
        (m.now, m.channel_id, m.now, m.id, 1, 0, m.priority, m.priority > 0, *names),
    ]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
