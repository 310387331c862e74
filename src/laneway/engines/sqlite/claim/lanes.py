"""Lanes: what waits in a channel, by kind, for claims of some kinds.

Only queues that are claimed by kind have them. A verb that changes what waits tells of it here,
before it updates the counts of its channels; that gives the lanes their turns.
"""

from collections.abc import Iterable

from laneway.engines.sqlite.base import WriteState, listed
from laneway.engines.sqlite.events import SqliteEventOutbox
from laneway.plan import Plan


class SqliteLanes(SqliteEventOutbox):
    def _now_waiting(self, ids: Iterable[int], state: WriteState) -> Plan[None]:
        """These messages wait, for the first time or again."""
        if state.by_kind:
            text = listed(ids)
            yield self._statement("add_kind_waiting", text)
            yield self._statement("add_to_lanes", text)

    def _no_longer_waiting(self, ids: Iterable[int], state: WriteState) -> Plan[None]:
        """These messages are about to be claimed, moved or ended; their rows are unchanged yet."""
        if state.by_kind:
            text = listed(ids)
            yield self._statement("take_from_lanes", text)
            yield self._statement("delete_kind_waiting", text)

    def _schedule_lanes(self, channels: Iterable[tuple[int, int]], now: int) -> Plan[None]:
        """Gives lanes a turn, a time to wake, or neither. ``channels``: ids, each with the turn for
        those that become ready."""
        rows = list(channels)
        yield self._many("delete_empty_lanes", [(id,) for id, _ in rows])
        yield self._many("schedule_lanes", [(*row, now) for row in rows])
