"""Dead letters: read, group and count them. No look reads more of them than LOOK."""

import json
from collections.abc import Sequence
from typing import Any

from laneway.engines.signatures import ERROR_START, LOOKED, CountedError, grouped
from laneway.engines.sqlite.base import SqliteBase, listed
from laneway.engines.times import micros, moment
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.plan import Plan, Row, Statement

LOOK = 4_000
"""Ten thousand would take 80 ms, which is longer than a look may."""
_AGES = slice(6, 8)  # of a counted error

Position = tuple[int | None, int | None]


class SqliteDeadLetterLooks(SqliteBase):
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | DeadLetterPosition | None
    ) -> Plan[DeadLetterPage]:
        start: Position = (micros(after.died_at), after.id) if after else (None, None)
        end = (yield from self._reach(wanted, start)) if wanted.rare else (None, None)
        rows = yield self._of(("dead_letters", "all_dead_letters"), wanted, limit, *start, *end)
        letters = [_letter(row) for row in rows]
        if len(letters) == limit:
            return DeadLetterPage(letters, DeadLetterPosition(letters[-1].died_at, letters[-1].id))
        died_at, letter = end
        if died_at is None or letter is None:
            return DeadLetterPage(letters)
        return DeadLetterPage(letters, DeadLetterPosition(moment(died_at), letter))

    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._read_outside("all_dead_letter_groups", LOOKED, ERROR_START)
        else:
            rows = yield self._read_outside("dead_letter_groups", queue, LOOKED, ERROR_START)
        return grouped((_counted(row) for row in rows), limit)

    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        looked, bound = 0, 0
        if not isinstance(wanted, DeadLetterFilter):
            ((found,),) = yield self._read_outside(
                "count_dead_letter_ids", listed(wanted), most + 1
            )
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            names = ("count_dead_letters", "count_all_dead_letters")
            ((found,),) = yield self._within(names, wanted, most + 1)
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def _dead_letter_ids(
        self, wanted: DeadLetterFilter, looked: int, *rest: Any, outside: bool = False
    ) -> Statement:
        """``outside`` of a transaction, or within the one that the caller has begun."""
        names = ("dead_letter_ids", "all_dead_letter_ids")
        return self._of(names, wanted, looked, *rest)._replace(outside=outside)

    def _reach(self, wanted: DeadLetterFilter, start: Position) -> Plan[Position]:
        """Where a look of LOOK letters ends; nowhere if there are not as many."""
        names = ("dead_letter_reach", "all_dead_letter_reach")
        rows = yield self._within(names, wanted, *start, LOOK - 1)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (None, None)

    def _of(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The first statement for a queue, the second one, without that parameter, for all."""
        values = _values(wanted)
        if wanted.queue is None:
            return self._read_outside(names[1], *values[1:], *params)
        return self._read_outside(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        times = micros(wanted.since), micros(wanted.until)
        if wanted.queue is None:
            return self._read_outside(names[1], *times, *params)
        return self._read_outside(names[0], wanted.queue, *times, *params)


def _values(wanted: DeadLetterFilter) -> tuple[Any, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    times = micros(wanted.since), micros(wanted.until)
    return (*names, *times, wanted.error_type)


def _counted(row: Row) -> CountedError:
    values: list[Any] = list(row)
    values[_AGES] = map(moment, values[_AGES])
    return CountedError(*values)


def _letter(row: Row) -> DeadLetter:
    id, queue, channel, kind, key, priority, died, published, first, *rest = row
    attempt, max_attempts, content_type, headers, payload, *why = rest
    return DeadLetter(
        id,
        queue,
        channel,
        kind,
        key,
        priority,
        moment(died),
        moment(published),
        moment(first),
        attempt,
        max_attempts,
        content_type,
        json.loads(headers) if headers else {},
        payload,
        *why,
    )
