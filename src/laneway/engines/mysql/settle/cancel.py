"""cancel, and the end of messages that lapse: waiting messages end without an attempt.

Invariant: a message is either claimed or ended here, never both, because this locks the message's
channel as a claim does.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.claim.lock import MysqlChannelLocks
from laneway.engines.mysql.publish.rows import WakeRow
from laneway.model import Cancelled
from laneway.plan import Plan

from .end import HistoryRow, MysqlSettleEnd
from .ended_lease import ended_key
from .results import MysqlResults


class WaitingMessage(NamedTuple):
    """A row of waiting_messages."""

    id: int
    channel_id: bytes
    queue: bytes
    channel: bytes
    kind: bytes
    key: bytes | None
    key_window: int | None
    priority: int
    attempt: int
    due: int
    published_at: int
    first_published_at: int
    payload_size: int
    now: int
    history: bytes
    by_kind: int


class MysqlCancel(MysqlSettleEnd, MysqlChannelLocks, MysqlResults):
    @repeatable
    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """A leased message belongs to its holder and stays."""
        return (yield from self._cancel(ids))

    def _cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        wanted = sorted(set(ids))
        rows = yield self._statement("message_channels", wanted)
        yield from self._lock_channels([(row[2], row[3]) for row in rows])
        ended = yield from self._end_waiting(wanted, b"cancelled")
        status: dict[int, Any] = dict.fromkeys(ended, "cancelled")
        if len(status) < len(wanted):
            rows = yield self._statement(
                "message_states", [id for id in wanted if id not in status]
            )
            status |= {int(row[0]): _text(row[1]) for row in rows}
        return [Cancelled(id, status.get(id, "absent")) for id in ids]

    def _end_waiting(self, ids: Sequence[int], outcome: bytes) -> Plan[list[int]]:
        """Ends those that are not leased. The caller has locked their channels."""
        rows = yield self._statement("waiting_messages", ids, self._now())
        ending = [WaitingMessage(*row) for row in rows]
        keys = [k for m in ending if (k := ended_key(m.id, m.queue, m.key, m.key_window))]
        if keys:
            # Read again: one that waited behind another may have been started meanwhile.
            keys = yield from self._lock_keys(keys)
            rows = yield self._statement("waiting_messages", ids, self._now())
            ending = [WaitingMessage(*row) for row in rows]
        if not ending:
            return []
        now, done = ending[0].now, [message.id for message in ending]
        yield from self._add_message_events(outcome.decode(), done)
        yield from self._keep_ended(done, outcome, now)
        yield from self._leave_lanes(ending)
        yield self._statement("delete_messages", done)
        if ending[0].history == b"all":
            yield from self._insert("add_history", [_history_row(m, outcome) for m in ending])
        yield from self._insert("add_wakes", [_wake(message) for message in ending])
        yield from self._release_keys([key for key in keys if key.id in done], now)
        return done

    def _leave_lanes(self, messages: Sequence[WaitingMessage]) -> Plan[None]:
        """Claims by kind are not to pass over what waits no more, or at another time."""
        if any(m.by_kind for m in messages):
            yield self._statement("delete_kind_messages", [m.id for m in messages])


def _history_row(m: WaitingMessage, outcome: bytes) -> HistoryRow:
    times = (m.first_published_at, m.published_at, m.due, None, m.now, m.payload_size)
    what = (True, False, m.priority, m.queue, m.channel, m.kind, None, outcome)
    return (m.id, None, m.attempt, *times, *what, None, None, None, None)


def _wake(m: WaitingMessage) -> WakeRow:
    """One message fewer, from just after the time at which its own wake counts it."""
    at = m.due + 1 if m.due > m.now else m.now
    return at, m.channel_id, m.due, m.id, -1, 0, m.priority, False, m.queue, m.channel


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
