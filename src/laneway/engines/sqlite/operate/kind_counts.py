"""How many messages of each kind have not ended: counted with the minutes, noted once a minute."""

from collections import Counter
from collections.abc import Iterable

from laneway.plan import Plan, Row

from .counts import SqliteCounts

_MOST = 50_000
"""Messages that are counted anew at once, after a time in which the history missed ends."""
_ENDS = ("completed", "cancelled", "lapsed")

Kind = tuple[str, str]
NOTED: Kind = ("", "")
"""The queue and kind of the row that says that a minute was noted."""


def live_changes(ended: Iterable[Row], published: Iterable[Row]) -> list[tuple[str, str, int]]:
    """Of rows of ``ended_since`` and ``published_between``: queue, kind, and how many more have not
    ended."""
    changes: Counter[Kind] = Counter()
    for _, queue, kind, outcome, dead, *_ in ended:
        if dead or outcome in _ENDS:
            changes[queue, kind] -= 1
        elif outcome == "redriven":
            changes[queue, kind] += 1
    for _, queue, kind, count in published:
        changes[queue, kind] += count
    return [(*names, change) for names, change in sorted(changes.items()) if change]


class SqliteKindCounts(SqliteCounts):
    def _recount_kinds(self) -> Plan[None]:
        """After a time without a full history, once it is kept again and if there are not too many
        messages. Read without a lock: if something was folded meanwhile, the next upkeep does it.
        """
        if not (yield self._read_outside("recount_needed", _MOST))[0][0]:
            return
        rows = yield self._read_outside("recount_kinds")
        if (yield self._statement("take_recount", *rows[0][:3])):
            yield self._statement("clear_kind_counts")
            counts = [row[3:] for row in rows if row[3] is not None and row[5]]
            yield self._many("add_kind_count", counts)

    def _kind_depths(self, folded: bool) -> Plan[list[tuple[str, str, int]] | None]:
        """By queue and kind; None if they are not known. ``folded``: whether this upkeep has
        counted all that there was."""
        rows = yield self._read_outside("kind_counts")
        known, nothing_new = rows[0][:2]
        if not known or not (folded or nothing_new):
            return None
        kinds = [(queue, kind, live) for _, _, queue, kind, live in rows]
        return [(*NOTED, 0), *(kind for kind in kinds if kind[0] is not None)]
