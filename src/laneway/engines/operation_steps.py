"""A step of a bulk operation, for engines that make it of several statements."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from laneway.model import DeadLetterFilter
from laneway.plan import Plan, Row


class OpenOperation(NamedTuple):
    """A running operation that this session is at."""

    action: str
    options: Mapping[str, Any]


class Moved(NamedTuple):
    """How far a step came."""

    done: int
    died_at: int | None
    letter: int | None
    ended: bool


class TakenLetters(NamedTuple):
    """The letters that are next, and the position of the last one that was looked at."""

    ids: list[int]
    died_at: Any
    letter: int | None
    ended: bool


def looked_at(wanted: DeadLetterFilter, limit: int) -> int:
    """How many letters a step looks at for the ``limit`` that it takes at most: one that looks for
    a few among a million is as short as any other."""
    return 5 * limit if wanted.rare else limit


def take_letters(
    rows: Sequence[Row], looked: int, limit: int, died_at: Any, letter: int | None
) -> TakenLetters:
    """Of rows with id, died_at and whether they match, oldest first: ``looked``, or the last."""
    ids: list[int] = []
    for id, at, fits in rows:
        died_at, letter = at, int(id)
        if fits:
            ids.append(letter)
        if len(ids) == limit:
            return TakenLetters(ids, died_at, letter, len(rows) < looked and letter == rows[-1][0])
    return TakenLetters(ids, died_at, letter, len(rows) < looked)


def filter_of(wanted: Mapping[str, Any]) -> DeadLetterFilter:
    values = dict(wanted)
    for name in ("since", "until"):
        if name in values:
            values[name] = datetime.fromisoformat(values[name])
    return DeadLetterFilter(**values)


def take_step(
    operation: OpenOperation,
    taken: TakenLetters,
    redrive: Callable[[Sequence[int], int | None, timedelta], Plan[int]],
    discard: Callable[[Sequence[int]], Plan[int]],
) -> Plan[Moved]:
    done = 0
    if taken.ids and operation.action == "redrive":
        delay = timedelta(seconds=operation.options.get("delay", 0))
        done = yield from redrive(taken.ids, operation.options.get("max_attempts"), delay)
    elif taken.ids:
        done = yield from discard(taken.ids)
    return Moved(done, taken.died_at, taken.letter, taken.ended)
