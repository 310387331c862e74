"""Dead letters: read, group and count them. No look reads more of them than LOOK."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.engines.signatures import ERROR_START, LOOKED, CountedError, grouped
from laneway.inspection import (
    LOOK,
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.plan import Plan, Row, Statement

_HEADERS = 12

Position = tuple[datetime | None, int | None]


class PostgresqlDeadLetterLooks(PostgresqlBase):
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | DeadLetterPosition | None
    ) -> Plan[DeadLetterPage]:
        start: Position = (after.died_at, after.id) if after else (None, None)
        end = (yield from self._reach(wanted, start)) if wanted.rare else None
        rows = yield self._of(
            ("dead_letters", "all_dead_letters"), wanted, limit, *start, *(end or (None, None))
        )
        letters = [_letter(row) for row in rows]
        if len(letters) == limit:
            end = DeadLetterPosition(letters[-1].died_at, letters[-1].id)
        return DeadLetterPage(letters, end)

    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._statement("all_dead_letter_groups", LOOKED, ERROR_START)
        else:
            rows = yield self._statement("dead_letter_groups", queue, LOOKED, ERROR_START)
        return grouped((CountedError(*row) for row in rows), limit)

    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        if not isinstance(wanted, DeadLetterFilter):
            rows = yield self._statement("count_dead_letter_ids", list(wanted), most + 1)
            found, looked, bound = rows[0][0], 0, 0
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            names = ("count_dead_letters", "count_all_dead_letters")
            ((found,),) = yield self._within(names, wanted, most + 1)
            looked, bound = 0, 0
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def _reach(self, wanted: DeadLetterFilter, start: Position) -> Plan[DeadLetterPosition | None]:
        """Where a look of LOOK letters ends; None if there are not as many."""
        names = ("dead_letter_reach", "all_dead_letter_reach")
        rows = yield self._within(names, wanted, *start, LOOK - 1)
        return DeadLetterPosition(*rows[0]) if rows else None

    def _of(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The first statement for a queue, the second one, without that parameter, for all."""
        values = dead_letter_values(wanted)
        if wanted.queue is None:
            return self._statement(names[1], *values[1:], *params)
        return self._statement(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        if wanted.queue is None:
            return self._statement(names[1], wanted.since, wanted.until, *params)
        return self._statement(names[0], wanted.queue, wanted.since, wanted.until, *params)


def dead_letter_values(wanted: DeadLetterFilter) -> tuple[object, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    return (*names, wanted.since, wanted.until, wanted.error_type)


def _letter(row: Row) -> DeadLetter:
    values = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return DeadLetter(*values)
