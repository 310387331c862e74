"""Dead letters: read, redrive and discard them, the last two in batches of their own."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta

from penstock.model import DeadLetter, DeadLetterFilter
from penstock.plan import Plan, Row, Statement

from .base import Base

_BATCH = 1000
_HEADERS = 12

Step = Callable[[Sequence[int]], Statement]


class DeadLetters(Base):
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | None
    ) -> Plan[list[DeadLetter]]:
        place = (after.died_at, after.id) if after else (None, None)
        rows = yield self._say("dead_letters", *_values(wanted), limit, *place)
        return [_letter(row) for row in rows]

    def redrive(
        self,
        wanted: Sequence[int] | DeadLetterFilter,
        max_attempts: int | None,
        delay: timedelta,
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._say_now("redrive", ids, max_attempts, delay)

        return self._batches(wanted, step)

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._say_now("discard", ids)

        return self._batches(wanted, step)

    def count_dead_letters(self, wanted: Sequence[int] | DeadLetterFilter, most: int) -> Plan[int]:
        ids = None if isinstance(wanted, DeadLetterFilter) else list(wanted)
        by = wanted if isinstance(wanted, DeadLetterFilter) else DeadLetterFilter()
        rows = yield self._say("count_dead_letters", *_values(by), ids, most)
        return int(rows[0][0])

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return self._matching(wanted, step)
        return self._given(wanted, step)

    def _given(self, ids: Sequence[int], step: Step) -> Plan[int]:
        done = 0
        for start in range(0, len(ids), _BATCH):
            done += len((yield step(list(ids[start : start + _BATCH]))))
        return done

    def _matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: what dies again meanwhile is not taken twice."""
        done = 0
        died_at, last_id, end = None, None, None
        while True:
            rows = yield self._say_now(
                "dead_letter_ids", *_values(wanted), _BATCH, died_at, last_id, end
            )
            if not rows:
                return done
            last_id, died_at, end = rows[-1]
            done += len((yield step([row[0] for row in rows])))


def _values(wanted: DeadLetterFilter) -> tuple[object, ...]:
    return (
        wanted.queue,
        wanted.channel,
        wanted.kind,
        wanted.reason,
        wanted.since,
        wanted.until,
    )


def _letter(row: Row) -> DeadLetter:
    values = list(row)
    values[_HEADERS] = json.loads(values[_HEADERS]) if values[_HEADERS] else {}
    return DeadLetter(*values)
