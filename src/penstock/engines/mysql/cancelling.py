"""cancel, and the end of messages that lapse: waiting messages end without an attempt.

Keeps: a message is either claimed or ended here, never both: this owns the channel, as a claim
does.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.model import Cancelled
from penstock.plan import Plan

from .ending import Ending
from .holding import key_holder
from .owning import Owning
from .posting import WakeRow
from .repeating import repeatable


class Waiting(NamedTuple):
    """The columns of unleased.sql."""

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


class Cancelling(Ending, Owning):
    @repeatable
    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """A leased one is its holder's and stays."""
        wanted = sorted(set(ids))
        rows = yield self._say("whereabouts", wanted)
        yield from self._own_channels([(row[2], row[3]) for row in rows])
        ended = yield from self._end_waiting(wanted, b"cancelled")
        status: dict[int, Any] = dict.fromkeys(ended, "cancelled")
        if len(status) < len(wanted):
            rows = yield self._say("unfinished", [id for id in wanted if id not in status])
            status |= {int(row[0]): _word(row[1]) for row in rows}
        return [Cancelled(id, status.get(id, "absent")) for id in ids]

    def _end_waiting(self, ids: Sequence[int], outcome: bytes) -> Plan[list[int]]:
        """Ends those that no lease holds. The caller owns their channels."""
        rows = yield self._say("unleased", ids, self._now())
        ending = [Waiting(*row) for row in rows]
        if not ending:
            return []
        now, done = ending[0].now, [w.id for w in ending]
        yield from self._tell(outcome.decode(), done)
        yield self._say("messages_drop", done)
        if ending[0].history == b"all":
            yield from self._say_rows("history_add", [_entry(w, outcome) for w in ending])
        yield from self._say_rows("wakes", [_fewer(w) for w in ending])
        keys = [k for w in ending if (k := key_holder(w.id, w.queue, w.key, w.key_window))]
        yield from self._release_keys(keys, now)
        return done


def _entry(w: Waiting, outcome: bytes) -> tuple[Any, ...]:
    times = (w.first_published_at, w.published_at, w.due, None, w.now, w.payload_size)
    what = (True, False, w.priority, w.queue, w.channel, w.kind, None, outcome)
    return (w.id, None, w.attempt, *times, *what, None, None, None)


def _fewer(w: Waiting) -> WakeRow:
    """One message fewer, from just after the moment at which its own wake counts it."""
    at = w.due + 1 if w.due > w.now else w.now
    return at, w.channel_id, w.due, w.id, -1, 0, w.priority, False, w.queue, w.channel


def _word(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
