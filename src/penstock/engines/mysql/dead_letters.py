"""Dead letters: read, redrive and discard them, the last two in batches of their own."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from penstock.model import DeadLetter, DeadLetterFilter
from penstock.plan import Plan, Row

from .ending import Ending
from .holding import key_holder
from .names import data, pair_id, text
from .posting import WakeRow
from .repeating import repeatable
from .telling import Told, told
from .times import length, micros, moment

_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class Dead(NamedTuple):
    """The columns of dead_held.sql."""

    id: int
    queue: bytes
    channel: bytes
    kind: bytes
    key: bytes | None
    key_window: int | None
    priority: int
    attempt: int
    reason: bytes
    error_type: bytes | None
    published_at: int
    first_published_at: int
    payload_size: int
    now: int
    history: bytes


class DeadLetters(Ending):
    @repeatable
    def dead_letters(
        self, wanted: DeadLetterFilter, limit: int, after: DeadLetter | None
    ) -> Plan[list[DeadLetter]]:
        place = (micros(after.died_at), after.id) if after else (None, None)
        rows = yield self._say("dead_letters", *_values(wanted), *place, limit)
        return [_letter(row) for row in rows]

    @repeatable
    def count_dead_letters(self, wanted: Sequence[int] | DeadLetterFilter, most: int) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            rows = yield self._say("count_dead_letters", *_values(wanted), most)
        elif wanted:
            rows = yield self._say("count_dead_ids", list(wanted), most)
        else:
            return 0
        return int(rows[0][0])

    @repeatable
    def redrive(
        self, wanted: Sequence[int] | DeadLetterFilter, max_attempts: int | None, delay: timedelta
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Plan[int]:
            return self._redrive(ids, max_attempts, length(delay))

        return (yield from self._batches(wanted, step))

    @repeatable
    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        return (yield from self._batches(wanted, self._discard))

    def _redrive(self, ids: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        letters = yield from self._hold_dead(ids)
        if not letters:
            return 0
        now, found = letters[0].now, [letter.id for letter in letters]
        yield self._say("redrive", found, now + delay, now, max_attempts)
        yield from self._say_rows("wakes", _wakes(letters, now + delay))
        yield from self._end_dead(letters, b"redriven", terminal=False)
        yield from self._tell_each("redriven", [_told(letter) for letter in letters])
        return len(letters)

    def _discard(self, ids: Sequence[int]) -> Plan[int]:
        letters = yield from self._hold_dead(ids)
        if not letters:
            return 0
        yield from self._end_dead(letters, b"discarded", terminal=True)
        yield from self._tell_each("discarded", [_told(letter) for letter in letters])
        keys = [k for x in letters if (k := key_holder(x.id, x.queue, x.key, x.key_window))]
        yield from self._release_keys(keys, letters[0].now)
        return len(letters)

    def _hold_dead(self, ids: Sequence[int]) -> Plan[list[Dead]]:
        rows = yield self._say("dead_held", sorted(set(ids)), self._now())
        return [Dead(*row) for row in rows]

    def _end_dead(self, letters: Sequence[Dead], outcome: bytes, *, terminal: bool) -> Plan[None]:
        yield self._say("dead_drop", [letter.id for letter in letters])
        if letters[0].history != b"none":
            yield from self._say_rows(
                "history_add", [_entry(x, outcome, terminal) for x in letters]
            )
        yield from self._count_dead(((x.queue, x.channel) for x in letters), -1)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return (yield from self._matching(wanted, step))
        done = 0
        for start in range(0, len(wanted), _BATCH):
            done += yield from step(wanted[start : start + _BATCH])
        return done

    def _matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: what dies again meanwhile is not taken twice."""
        done = 0
        rows = yield self._say("clock", self._now())
        end, place = int(rows[0][0]), (None, None)
        while True:
            rows = yield self._say("dead_letter_ids", *_values(wanted), *place, _BATCH, end)
            if not rows:
                return done
            place = rows[-1][1], rows[-1][0]
            done += yield from step([int(row[0]) for row in rows])


def _told(letter: Dead) -> Told:
    return told(letter.id, letter.queue, letter.channel, letter.kind)


def _values(wanted: DeadLetterFilter) -> tuple[Any, ...]:
    names = (wanted.queue, wanted.channel, wanted.kind, wanted.reason)
    times = (wanted.since, wanted.until)
    return (*map(data, names), *(None if time is None else micros(time) for time in times))


def _wakes(letters: Sequence[Dead], due: int) -> list[WakeRow]:
    groups: dict[tuple[bytes, bytes, int], list[int]] = defaultdict(list)
    for letter in letters:
        groups[letter.queue, letter.channel, letter.priority].append(letter.id)
    return [
        (due, pair_id(queue, name), due, min(ids), len(ids), 0, priority, priority > 0, queue, name)
        for (queue, name, priority), ids in groups.items()
    ]


def _entry(x: Dead, outcome: bytes, terminal: bool) -> tuple[Any, ...]:
    times = (x.first_published_at, x.published_at, None, None, x.now, x.payload_size)
    where = (terminal, False, x.priority, x.queue, x.channel, x.kind, None, outcome)
    return (x.id, None, x.attempt, *times, *where, x.reason, x.error_type, None)


def _letter(row: Row) -> DeadLetter:
    id, queue, channel, kind, key, priority, died_at, published_at, first, *rest = row
    attempt, max_attempts, content_type, headers, payload, reason, error_type, error = rest
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
    )
