"""Dead letters on every engine: groups of those with the same defect, and steps of bulk
operations."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from laneway.inspection import DeadLetterGroup, DeadLetterGroups
from laneway.model import DeadLetterFilter
from laneway.plan import Plan, Row

# The signature of an error: the same for the same defect, whichever numbers, ids and quoted values
# are in its text.

ERROR_START = 400
"""How much of an error's text is read for it."""
_LENGTH = 200
_ID_LENGTH = 8

# Inside a word an apostrophe is no quote: can't, the users' file. Each alternative begins with its
# quote, not with what must not be before it: that is searched for much faster.
_QUOTED = re.compile(r"'(?<!\w')[^']*'(?!\w)|\"(?<!\w\")[^\"]*\"(?!\w)|`[^`]*`|“[^”]*”|«[^»]*»")
# Text that was cut within a quoted value.
_OPEN = re.compile(r"(['\"])(?<!\w.)[^'\"]*$")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_WORD = re.compile(r"\b[^\W\d]*\d\w*")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class CountedError:
    """Dead letters of one queue and kind that begin with the same text."""

    queue: str
    kind: str
    reason: str
    error_type: str | None
    error: str | None
    count: int
    oldest: datetime
    newest: datetime
    example: int


def signature(error: str | None) -> str:
    """The last line of what is known of it, with numbers, ids and quoted values masked. Ten
    thousand of them are compared in a look, so what does not occur is not searched for."""
    line = _QUOTED.sub(_quotes_only, _last_line(error))
    if error is not None and len(error) >= ERROR_START:
        line = _OPEN.sub(r"\1…\1", line)
    if line.count("-") >= 4:
        line = _UUID.sub("<id>", line)
    if "@" in line:
        line = _MAIL.sub("<email>", line)
    return _WORD.sub(_masked, line)[:_LENGTH]


def _quotes_only(found: re.Match[str]) -> str:
    return f"{found[0][0]}…{found[0][-1]}"


def _masked(found: re.Match[str]) -> str:
    """Of a word with a digit in it: long ones with letters are hashes, keys, ids with a prefix."""
    word = found[0]
    if word.isdigit():
        return "#"
    if word.startswith("0x"):
        return "<address>"
    return "<id>" if len(word) >= _ID_LENGTH else _NUMBER.sub("#", word)


def grouped(counted: Iterable[CountedError], limit: int, most: int) -> DeadLetterGroups:
    """The largest groups first, of the newest ``most``."""
    found: dict[tuple[str | None, ...], _Group] = {}
    looked = 0
    for one in counted:
        looked += one.count
        said = signature(one.error)
        key = (one.queue, one.kind, signature(one.reason), one.error_type, said)
        if key not in found:
            found[key] = _Group(said, key[2] or "", one)
        found[key].add(one)
    groups = [group.result() for group in found.values()]
    groups.sort(key=lambda group: (-group.count, group.queue, group.kind))
    return DeadLetterGroups(groups[:limit], looked, looked < most)


def _last_line(text: str | None) -> str:
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else ""


@dataclass(slots=True)
class _Group:
    """What is added up for one group."""

    signature: str
    reason: str
    newest: CountedError
    count: int = 0
    oldest: datetime | None = None
    texts: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)

    def add(self, one: CountedError) -> None:
        self.count += one.count
        self.oldest = one.oldest if self.oldest is None else min(self.oldest, one.oldest)
        self.newest = max(self.newest, one, key=lambda x: (x.newest, x.example))
        self.texts.add(_last_line(one.error)[:_LENGTH])
        self.reasons.add(one.reason)

    def result(self) -> DeadLetterGroup:
        one = self.newest
        return DeadLetterGroup(
            one.queue,
            one.kind,
            self.reason if len(self.reasons) > 1 else one.reason,
            one.error_type,
            self.signature,
            self.count,
            one.oldest if self.oldest is None else self.oldest,
            one.newest,
            one.example,
            self.signature if len(self.texts) > 1 else next(iter(self.texts)),
            len(self.reasons),
        )


# A step of a bulk operation, for engines that make it of several statements.


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
