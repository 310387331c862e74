"""Dead letters: redrive and discard them, in batches."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from laneway.engines.operation_steps import looked_at, take_letters
from laneway.engines.postgresql.operate.dead_letter_looks import (
    PostgresqlDeadLetterLooks,
    dead_letter_values,
)
from laneway.model import DeadLetterFilter
from laneway.plan import Plan, Statement

_BATCH = 1000

Step = Callable[[Sequence[int]], Statement]


class PostgresqlDeadLetters(PostgresqlDeadLetterLooks):
    def redrive(
        self,
        wanted: Sequence[int] | DeadLetterFilter,
        max_attempts: int | None,
        delay: timedelta,
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._statement_now("redrive", ids, max_attempts, delay)

        return self._batches(wanted, step)

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        def step(ids: Sequence[int]) -> Statement:
            return self._statement_now("discard", ids)

        return self._batches(wanted, step)

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
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        died_at, letter, end = None, None, None
        values = dead_letter_values(wanted)
        while True:
            if wanted.queue is None:
                page = (*values[1:], looked, died_at, letter, end)
                rows = yield self._statement_now("all_dead_letter_ids", *page)
            else:
                page = (*values, looked, died_at, letter, end)
                rows = yield self._statement_now("dead_letter_ids", *page)
            end = rows[-1][3] if rows else end
            taken = take_letters([row[:3] for row in rows], looked, _BATCH, died_at, letter)
            if taken.ids:
                done += len((yield step(taken.ids)))
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter
