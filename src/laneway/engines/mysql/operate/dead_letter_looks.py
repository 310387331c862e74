"""Dead letters: read, group and count them. No look reads more of them than LOOK."""

import json
from collections.abc import Sequence
from typing import Any

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.signatures import ERROR_START, CountedError, grouped
from laneway.engines.times import micros, moment
from laneway.inspection import (
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
)
from laneway.model import DeadLetter, DeadLetterFilter
from laneway.plan import Plan, Row, Statement

LOOK = 3_000
"""Fewer than elsewhere: each row is found through an index, then by its key, and those that are
grouped go through a temporary table."""

Position = tuple[int | None, int | None]


class MysqlDeadLetterLooks(MysqlBase):
    @repeatable
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

    @repeatable
    def dead_letter_groups(self, queue: str | None, limit: int) -> Plan[DeadLetterGroups]:
        if queue is None:
            rows = yield self._statement("all_dead_letter_groups", LOOK, ERROR_START)
        else:
            rows = yield self._statement("dead_letter_groups", data(queue), LOOK, ERROR_START)
        return grouped((_counted(row) for row in rows), limit, LOOK)

    @repeatable
    def count_dead_letters(
        self, wanted: Sequence[int] | DeadLetterFilter, most: int
    ) -> Plan[DeadLetterCount]:
        looked, bound = 0, 0
        if not isinstance(wanted, DeadLetterFilter):
            if not wanted:
                return DeadLetterCount(0)
            ((found,),) = yield self._statement("count_dead_letter_ids", list(wanted), most + 1)
        elif wanted.rare:
            names = ("count_dead_letters_matching", "count_all_dead_letters_matching")
            ((found, looked),) = yield self._of(names, wanted, LOOK + 1)
            found, bound = min(found, LOOK), LOOK
        else:
            names = ("count_dead_letters", "count_all_dead_letters")
            ((found,),) = yield self._within(names, wanted, most + 1)
        return DeadLetterCount(min(int(found), most), found > most or looked > bound)

    def _dead_letter_ids(self, wanted: DeadLetterFilter, looked: int, *rest: Any) -> Statement:
        return self._of(("dead_letter_ids", "all_dead_letter_ids"), wanted, looked, *rest)

    def _reach(self, wanted: DeadLetterFilter, start: Position) -> Plan[Position]:
        """Where a look of LOOK letters ends; nowhere if there are not as many."""
        names = ("dead_letter_reach", "all_dead_letter_reach")
        rows = yield self._within(names, wanted, *start, LOOK - 1)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (None, None)

    def _of(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The first statement for a queue, the second one, without that parameter, for all."""
        values = _values(wanted)
        if wanted.queue is None:
            return self._statement(names[1], *values[1:], *params)
        return self._statement(names[0], *values, *params)

    def _within(self, names: tuple[str, str], wanted: DeadLetterFilter, *params: Any) -> Statement:
        """The same for statements that know only queue and times."""
        times = micros(wanted.since), micros(wanted.until)
        if wanted.queue is None:
            return self._statement(names[1], *times, *params)
        return self._statement(names[0], data(wanted.queue), *times, *params)


def _values(wanted: DeadLetterFilter) -> tuple[Any, ...]:
    """In the order of the statements' parameters."""
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    times = micros(wanted.since), micros(wanted.until)
    return (*map(data, names), *times, data(wanted.error_type))


def _counted(row: Row) -> CountedError:
    queue, kind, reason, error_type, error, count, oldest, newest, example = row
    names = (text(queue) or "", text(kind) or "", _cut(reason) or "")
    times = (moment(oldest), moment(newest))
    return CountedError(*names, _cut(error_type), _cut(error), int(count), *times, int(example))


def _cut(value: bytes | str | None) -> str | None:
    """The beginning of a text; the cut may go through a character."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _letter(row: Row) -> DeadLetter:
    id, queue, channel, kind, key, priority, died_at, published_at, first, *rest = row
    attempt, max_attempts, content_type, headers, payload, reason, error_type, error, trace = rest
    return DeadLetter(
        id,
        text(queue) or "",
        text(channel) or "",
        text(kind) or "",
        text(key),
        priority,
        moment(died_at),
        moment(published_at),
        moment(first),
        attempt,
        max_attempts,
        text(content_type) or "",
        json.loads(headers) if headers else {},
        payload,
        text(reason) or "",
        text(error_type),
        text(error),
        text(trace),
    )
