"""Dead letters: redrive and discard them, in batches."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from laneway.engines.mysql.operate.dead_letter_looks import MysqlDeadLetterLooks
from laneway.engines.operation_steps import looked_at, take_letters
from laneway.engines.times import micros
from laneway.model import DeadLetterFilter
from laneway.plan import Plan

from .base import repeatable
from .events import EventRow, event_row
from .names import pair_id
from .publish.rows import WakeRow
from .settle.end import HistoryRow, MysqlSettleEnd
from .settle.ended_lease import ended_key

_BATCH = 1000

Step = Callable[[Sequence[int]], Plan[int]]


class LockedDeadLetter(NamedTuple):
    """A row of lock_dead_letters."""

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


class MysqlDeadLetters(MysqlDeadLetterLooks, MysqlSettleEnd):
    @repeatable
    def redrive(
        self, wanted: Sequence[int] | DeadLetterFilter, max_attempts: int | None, delay: timedelta
    ) -> Plan[int]:
        def step(ids: Sequence[int]) -> Plan[int]:
            return self._redrive(ids, max_attempts, micros(delay))

        return (yield from self._batches(wanted, step))

    @repeatable
    def discard(self, wanted: Sequence[int] | DeadLetterFilter) -> Plan[int]:
        return (yield from self._batches(wanted, self._discard))

    def _redrive(self, ids: Sequence[int], max_attempts: int | None, delay: int) -> Plan[int]:
        letters = yield from self._lock_dead_letters(ids)
        if not letters:
            return 0
        now, found = letters[0].now, [letter.id for letter in letters]
        yield self._statement("redrive", found, now + delay, now, max_attempts)
        yield from self._insert("add_wakes", _wakes(letters, now + delay))
        yield from self._delete_dead_letters(letters, b"redriven", terminal=False)
        yield from self._add_events("redriven", [_event_row(letter) for letter in letters])
        return len(letters)

    def _discard(self, ids: Sequence[int]) -> Plan[int]:
        letters = yield from self._lock_dead_letters(ids)
        if not letters:
            return 0
        found = [letter.id for letter in letters]
        yield self._statement("keep_discarded", found, letters[0].now)
        yield from self._delete_dead_letters(letters, b"discarded", terminal=True)
        yield from self._add_events("discarded", [_event_row(letter) for letter in letters])
        keys = [k for x in letters if (k := ended_key(x.id, x.queue, x.key, x.key_window))]
        yield from self._release_keys(keys, letters[0].now)
        return len(letters)

    def _lock_dead_letters(self, ids: Sequence[int]) -> Plan[list[LockedDeadLetter]]:
        rows = yield self._statement("lock_dead_letters", sorted(set(ids)), self._now())
        return [LockedDeadLetter(*row) for row in rows]

    def _delete_dead_letters(
        self, letters: Sequence[LockedDeadLetter], outcome: bytes, *, terminal: bool
    ) -> Plan[None]:
        yield self._statement("delete_dead_letters", [letter.id for letter in letters])
        if letters[0].history != b"none":
            yield from self._insert(
                "add_history", [_history_row(x, outcome, terminal) for x in letters]
            )
        yield from self._count_dead(((x.queue, x.channel) for x in letters), -1)

    def _batches(self, wanted: Sequence[int] | DeadLetterFilter, step: Step) -> Plan[int]:
        if isinstance(wanted, DeadLetterFilter):
            return (yield from self._batches_matching(wanted, step))
        done = 0
        for start in range(0, len(wanted), _BATCH):
            done += yield from step(wanted[start : start + _BATCH])
        return done

    def _batches_matching(self, wanted: DeadLetterFilter, step: Step) -> Plan[int]:
        """Page by page, up to now: a message that dies again meanwhile is not taken twice."""
        done, looked = 0, looked_at(wanted, _BATCH)
        rows = yield self._statement("clock", self._now())
        end = int(rows[0][0])
        died_at, letter = None, None
        while True:
            rows = yield self._dead_letter_ids(wanted, looked, died_at, letter, end)
            taken = take_letters(rows, looked, _BATCH, died_at, letter)
            if taken.ids:
                done += yield from step(taken.ids)
            if taken.ended:
                return done
            died_at, letter = taken.died_at, taken.letter


def _event_row(letter: LockedDeadLetter) -> EventRow:
    return event_row(letter.id, letter.queue, letter.channel, letter.kind)


def _wakes(letters: Sequence[LockedDeadLetter], due: int) -> list[WakeRow]:
    groups: dict[tuple[bytes, bytes, int], list[int]] = defaultdict(list)
    for letter in letters:
        groups[letter.queue, letter.channel, letter.priority].append(letter.id)
    return [
        (due, pair_id(queue, name), due, min(ids), len(ids), 0, priority, priority > 0, queue, name)
        for (queue, name, priority), ids in groups.items()
    ]


def _history_row(x: LockedDeadLetter, outcome: bytes, terminal: bool) -> HistoryRow:
    times = (x.first_published_at, x.published_at, None, None, x.now, x.payload_size)
    where = (terminal, False, x.priority, x.queue, x.channel, x.kind, None, outcome)
    return (x.id, None, x.attempt, *times, *where, x.reason, x.error_type, None, None)
