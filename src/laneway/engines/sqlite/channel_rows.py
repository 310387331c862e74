"""Rows of channels: found or created by name, and their counts."""

from collections.abc import Sequence
from typing import NamedTuple

from laneway.plan import Plan

from .base import WriteState, listed
from .claim.lanes import SqliteLanes

Names = tuple[str, str]
"""A queue and a channel."""


class FoundChannel(NamedTuple):
    """What publish must know of a channel; ``room`` is None where there is no limit."""

    id: int
    closing: bool
    room: int | None


CountRow = tuple[int, int, int, int, int | None, int, int]
"""Parameters of update_channel_counts."""


class CountChanges:
    """What a verb changes in the counts of its channels, by channel id: waiting messages added,
    leases added, their priorities (as bits), their earliest due."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, int, int, int | None]] = {}

    def add(
        self,
        channel_id: int,
        *,
        more: int = 0,
        leased: int = 0,
        priority: int = 0,
        due: int | None = None,
    ) -> None:
        old_more, old_leased, bands, first = self._rows.get(channel_id, (0, 0, 0, None))
        if due is not None:
            bands |= 1 << priority
            first = due if first is None else min(first, due)
        self._rows[channel_id] = (old_more + more, old_leased + leased, bands, first)

    def rows(self, first_turn: int, now: int) -> list[CountRow]:
        """Parameters of update_channel_counts. Channels that become ready get their turns in the
        order in which they were added."""
        return [
            (channel_id, *change, first_turn + number, now)
            for number, (channel_id, change) in enumerate(self._rows.items())
        ]


class SqliteChannelRows(SqliteLanes):
    def _channels(self, names: Sequence[Names], now: int) -> Plan[dict[Names, FoundChannel]]:
        """Creates those that do not exist."""
        found = yield from self._known(names)
        missing = [name for name in names if name not in found]
        if missing:
            yield self._many("add_channel", [(*name, now) for name in missing])
            found |= yield from self._known(missing)
        return found

    def _known(self, names: Sequence[Names]) -> Plan[dict[Names, FoundChannel]]:
        by_queue: dict[str, list[str]] = {}
        for queue, name in names:
            by_queue.setdefault(queue, []).append(name)
        found: dict[Names, FoundChannel] = {}
        for queue, channels in by_queue.items():
            rows = yield self._statement("find_channels", queue, listed(channels))
            found |= {(queue, name): FoundChannel(*rest) for name, *rest in rows}
        return found

    def _update_counts(self, changes: CountChanges, state: WriteState) -> Plan[None]:
        rows = changes.rows(state.turn, state.now)
        yield self._many("update_channel_counts", rows)
        if state.by_kind:
            yield from self._schedule_lanes([(row[0], row[5]) for row in rows], state.now)
