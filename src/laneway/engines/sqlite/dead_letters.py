"""Dead letters: redrive and discard them, in batches of up to 1000."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from laneway.engines.operation_steps import looked_at, take_letters
from laneway.engines.sqlite.operate.dead_letter_looks import SqliteDeadLetterLooks
from laneway.engines.times import micros
from laneway.model import DeadLetterFilter
from laneway.plan import Plan

from .base import listed
from .channel_rows import CountChanges
from .settle.end import SqliteEndedKey, SqliteSettleEnd

_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class SqliteDeadLetters(SqliteDeadLetterLooks, SqliteSettleEnd):
    def redrive(
        self,
        wanted: Sequence[int] | DeadLetterFilter,
        max_attempts: int | None,
        delay: timedelta,
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Plan[int]:
            return self._redrive(ids, max_attempts, micros(delay))

        return self._batches(wanted, step)

    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        return self._batches(wanted, self._discard)

    def _redrive(self, wanted: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        state = yield from self._begin_write(turns=len(wanted))
        rows = yield self._statement("dead_letter_channels", listed(wanted))
        ids = listed(dict.fromkeys(row[0] for row in rows))
        names = list(dict.fromkeys((queue, channel) for _, queue, channel in rows))
        yield from self._channels(names, state.now)
        due = state.now + delay
        back = yield self._statement("redrive", ids, due, max_attempts, state.now)
        if not back:
            return 0
        yield self._statement("add_dead_letter_history", ids, "redriven", False, state.now)
        yield self._statement("subtract_dead_counts", ids)
        yield self._statement("delete_dead_letters", ids)
        yield self._statement("add_waiting_again", ids)
        yield from self._now_waiting((row[0] for row in back), state)
        changes = CountChanges()
        for _, channel_id, priority in back:
            changes.add(channel_id, more=1, priority=priority, due=due)
        yield from self._update_counts(changes, state)
        yield from self._add_events("redriven", [row[0] for row in back], state)
        yield from self._revive_nodes([row[0] for row in back], state)
        return len(back)

    def _discard(self, wanted: Sequence[int]) -> Plan[int]:
        state = yield from self._begin_write()
        ids = listed(dict.fromkeys(wanted))
        yield self._statement("add_dead_letter_history", ids, "discarded", True, state.now)
        yield self._statement("subtract_dead_counts", ids)
        yield from self._add_dead_letter_events("discarded", list(dict.fromkeys(wanted)), state)
        yield self._statement("keep_discarded", ids, state.now)
        gone = yield self._statement("delete_dead_letters", ids)
        keys = [
            SqliteEndedKey(queue, key, id, window)
            for id, queue, key, window in gone
            if key is not None
        ]
        yield from self._release_keys(keys, CountChanges(), state)
        yield from self._nodes_ended([row[0] for row in gone], {}, "discarded", state)
        return len(gone)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return self._matching(wanted, step)
        return self._given(wanted, step)

    def _given(self, ids: Sequence[int], step: Step) -> Plan[int]:
        done = 0
        for start in range(0, len(ids), _BATCH):
            done += yield from step(ids[start : start + _BATCH])
        return done

    def _matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        died_at, letter, end = None, None, self._now()
        while True:
            rows = yield self._dead_letter_ids(wanted, looked, died_at, letter, end, outside=True)
            taken = take_letters(rows, looked, _BATCH, died_at, letter)
            if taken.ids:
                done += yield from step(taken.ids)
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter
