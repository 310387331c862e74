"""The verbs of a lease holder, and cancel. Each carries the fence and answers per message."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import repeat
from typing import Any

from penstock.contract import Hold
from penstock.model import Cancelled, Deferral, Extension, Failure, Return, Settled
from penstock.plan import Plan, Row

from .base import Base


class Settling(Base):
    def complete(self, leases: Sequence[Row]) -> Plan[list[Settled]]:
        """The function names only those that were lost."""
        ids, fences = [lease[0] for lease in leases], [lease[1] for lease in leases]
        rows = yield self._say_now("complete", ids, fences)
        if not rows:
            return _completed(ids, fences)
        lost = {(row[0], row[1]) for row in rows}
        return [
            Settled(*held, "lost" if held in lost else "completed")
            for held in zip(ids, fences, strict=True)
        ]

    def defer(self, deferrals: Sequence[Deferral]) -> Plan[list[Settled]]:
        return self._settle("defer", deferrals)

    def fail(self, failures: Sequence[Failure]) -> Plan[list[Settled]]:
        return self._settle("fail", failures)

    def extend(self, extensions: Sequence[Extension]) -> Plan[list[Settled]]:
        return self._settle("extend", extensions)

    def hold(self, leases: Sequence[Row], span: timedelta) -> Plan[list[Hold]]:
        ids, fences = [lease[0] for lease in leases], [lease[1] for lease in leases]
        rows = yield self._say_now("hold", ids, fences, span)
        others: dict[tuple[int, int], Hold] = {(row[0], row[1]): row[2] for row in rows}
        return [others.get(lease, "extended") for lease in zip(ids, fences, strict=True)]

    def give_back(self, returns: Sequence[Return]) -> Plan[list[Settled]]:
        return self._settle("give_back", returns)

    def once(self, queue: str, key: str, keep: timedelta) -> Plan[bool]:
        rows = yield self._say_now("once", queue, key, keep)
        return bool(rows[0][0])

    def cancel(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        rows = yield self._say_now("cancel", list(ids))
        status = {row[0]: row[1] for row in rows}
        return [Cancelled(id, status[id]) for id in ids]

    def _settle(self, verb: str, items: Sequence[tuple[Any, ...]]) -> Plan[list[Settled]]:
        rows = yield self._say_now(verb, *_columns(items))
        # In the function's own order, and once for a message that was named twice.
        answers = {(row[0], row[1]): Settled(*row) for row in rows}
        return [answers[item[0], item[1]] for item in items]


def _completed(ids: list[int], fences: list[int]) -> list[Settled]:
    """Without a call for each: this is what nearly all answers are."""
    answers = zip(ids, fences, repeat("completed"), repeat(None))
    return list(map(tuple.__new__, repeat(Settled), answers))


def _columns(items: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(values) for values in zip(*items, strict=True)]
