"""Dead letters: read, redrive and discard them, the last two in steps of at most a thousand."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta

from penstock.model import DeadLetter, DeadLetterFilter
from penstock.plan import Plan, Row

from .base import listed
from .ending import Ending, Key
from .moves import Moves
from .naming import Naming
from .times import micros, moment

_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class DeadLetters(Naming, Ending):
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | None
    ) -> Plan[list[DeadLetter]]:
        place = (micros(after.died_at), after.id) if after else (None, None)
        rows = yield self._look("dead_letters", *_values(wanted), limit, *place)
        return [_letter(row) for row in rows]

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

    def count_dead_letters(self, wanted: Sequence[int] | DeadLetterFilter, most: int) -> Plan[int]:
        ids = None if isinstance(wanted, DeadLetterFilter) else listed(wanted)
        by = wanted if isinstance(wanted, DeadLetterFilter) else DeadLetterFilter()
        rows = yield self._look("count_dead_letters", *_values(by), ids, most)
        return int(rows[0][0])

    def _redrive(self, wanted: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        state = yield from self._begin(turns=len(wanted))
        rows = yield self._say("dead_channels", listed(wanted))
        ids = listed(dict.fromkeys(row[0] for row in rows))
        names = list(dict.fromkeys((queue, channel) for _, queue, channel in rows))
        yield from self._channels(names, state.now)
        due = state.now + delay
        back = yield self._say("redrive", ids, due, max_attempts, state.now)
        if not back:
            return 0
        yield self._say("note_dead", ids, "redriven", False, state.now)
        yield self._say("uncount_dead", ids)
        yield self._say("leave_dead", ids)
        yield self._say("wait_again", ids)
        moves = Moves()
        for _, channel_id, priority in back:
            moves.add(channel_id, more=1, priority=priority, due=due)
        yield from self._move(moves, state)
        yield from self._tell("redriven", [row[0] for row in back], state)
        return len(back)

    def _discard(self, wanted: Sequence[int]) -> Plan[int]:
        state = yield from self._begin()
        ids = listed(dict.fromkeys(wanted))
        yield self._say("note_dead", ids, "discarded", True, state.now)
        yield self._say("uncount_dead", ids)
        yield from self._tell_dead("discarded", list(dict.fromkeys(wanted)), state)
        gone = yield self._say("leave_dead", ids)
        keys = [Key(queue, key, id, window) for id, queue, key, window in gone if key is not None]
        yield from self._free_keys(keys, state.now)
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
        """Page by page, up to now: what dies again meanwhile is not taken twice."""
        done = 0
        died_at, last_id, end = None, None, self._now()
        while True:
            rows = yield self._look(
                "dead_letter_ids", *_values(wanted), _BATCH, died_at, last_id, end
            )
            if not rows:
                return done
            last_id, died_at = rows[-1]
            done += yield from step([row[0] for row in rows])


def _values(wanted: DeadLetterFilter) -> tuple[object, ...]:
    return (
        wanted.queue,
        wanted.channel,
        wanted.kind,
        wanted.reason,
        micros(wanted.since),
        micros(wanted.until),
    )


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
