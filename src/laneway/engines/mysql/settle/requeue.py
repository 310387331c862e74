"""What becomes of messages whose leases just ended: they wait again, or become dead letters."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from laneway.engines.mysql.publish.rows import WakeRow
from laneway.plan import Plan

from .behind import EndedKey
from .end import MysqlSettleEnd
from .ended_lease import EndedLease


class Requeue(NamedTuple):
    """A message that waits again, until ``due``. ``counts``: the attempt is counted; ``fails``: it
    also uses up one of max_attempts, otherwise the count of failed attempts starts again at 0."""

    lease: EndedLease
    due: int
    counts: bool
    fails: bool


class Cause(NamedTuple):
    """Why a message became a dead letter."""

    reason: bytes
    error_type: bytes | None
    error: bytes | None
    traceback: bytes | None = None


class MysqlRequeue(MysqlSettleEnd):
    def _requeue(self, requeues: Sequence[Requeue]) -> Plan[None]:
        """Adds a wake for each; rewrites a message's row only if it changes."""
        groups: dict[tuple[int, bool, bool], list[int]] = defaultdict(list)
        for requeue in requeues:
            if requeue.counts or requeue.due != requeue.lease.due:
                group = requeue.due, requeue.counts, requeue.fails
                groups[group].append(requeue.lease.id)
        for (due, counts, fails), ids in groups.items():
            yield self._statement("requeue", ids, due, int(counts), int(fails))
        yield from self._insert("add_wakes", [_wake(requeue) for requeue in requeues])

    def _add_dead_letters(self, dying: Sequence[tuple[EndedLease, Cause]], now: int) -> Plan[None]:
        yield from self._add_message_events("dead", [lease.id for lease, _ in dying])
        groups: dict[Cause, list[int]] = defaultdict(list)
        for lease, cause in dying:
            groups[cause].append(lease.id)
        for cause, ids in groups.items():
            yield self._statement("add_dead_letters", ids, now, *cause)
            yield self._statement("delete_messages", ids)
        yield from self._count_dead(((lease.queue, lease.channel) for lease, _ in dying), 1)
        keys = [EndedKey(x.id, x.queue, x.key, None) for x, _ in dying if x.key is not None]
        if keys:
            keys = yield from self._lock_keys(keys)
            if passed_on := (yield from self._start_behind(keys, now)):
                yield self._statement("forget_dead_keys", passed_on)


def _wake(requeue: Requeue) -> WakeRow:
    lease, due = requeue.lease, requeue.due
    at = max(due, lease.now)
    ahead = lease.priority > 0 or due < at
    names = lease.queue, lease.channel
    return at, lease.channel_id, due, lease.id, 1, 0, lease.priority, ahead, *names
