"""One of several types: the one that fits best, and none if two fit alike."""

from collections.abc import Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any

from penstock.errors import DecodeError, shown

from .annotations import bare
from .reader import REFUSALS, Build, Notes, Read, Reader, name_of, unreadable

_Members = list[tuple[Any, Read]]

# What the narrower type is written as, the wider one reads too.
_NARROW_AND_WIDE = ((date, datetime), (int, float))


def union(choices: Sequence[Any], build: Build) -> Reader:
    """A text or a number is the first that it can be, a date before a datetime and an int before a
    float. An object or an array is what leaves the fewest keys unused, then what has the fewest
    fields left over."""
    members = [(choice, build(choice)) for choice in _narrow_first([bare(c) for c in choices])]
    possible = [(choice, reader) for choice, reader in members if reader.never is None]
    if not possible:
        return unreadable("; ".join(reader.never or "" for _, reader in members))
    texts = [(choice, reader.text) for choice, reader in possible if reader.text]
    return Reader(
        _one_of([(choice, reader.read) for choice, reader in possible]),
        _one_of(texts) if texts else None,
        raw=any(reader.raw for _, reader in possible),
    )


def _one_of(members: _Members) -> Read:
    others = [read for choice, read in members if choice not in (None, NoneType)]
    is_optional = len(others) == 1 and len(members) == 2
    return _perhaps(others[0]) if is_optional else _best(members)


def _perhaps(read_other: Read) -> Read:
    """For the common ``X | None``, whose errors are X's own."""

    def read(value: Any, notes: Notes) -> Any:
        return None if value is None else read_other(value, notes)

    return read


def _best(members: _Members) -> Read:
    names = ", ".join(name_of(choice) for choice, _ in members)

    def read(value: Any, notes: Notes) -> Any:
        compared = isinstance(value, dict | list)
        fits: list[tuple[Notes, Any, Any]] = []
        for choice, read_choice in members:
            mine = Notes()
            try:
                result = read_choice(value, mine)
            except REFUSALS:
                continue
            fits.append((mine, choice, result))
            if not compared:
                break
        if not fits:
            raise DecodeError(f"{shown(value)} is none of {names}")
        mine, result = _only_best(value, fits)
        notes.add(mine)
        return result

    return read


def _only_best(value: Any, fits: list[tuple[Notes, Any, Any]]) -> tuple[Notes, Any]:
    least = min(mine.misfit for mine, _, _ in fits)
    (mine, choice, result), *rest = [fit for fit in fits if fit[0].misfit == least]
    for _, other, also in rest:
        if type(also) is not type(result) or also != result:
            raise DecodeError(
                f"{shown(value)} fits {name_of(choice)} and {name_of(other)} alike: give them a "
                "field that tells them apart, such as kind: Literal[…]"
            )
    return mine, result


def _narrow_first(choices: list[Any]) -> list[Any]:
    for narrow, wide in _NARROW_AND_WIDE:
        if narrow in choices and wide in choices and choices.index(narrow) > choices.index(wide):
            choices.remove(narrow)
            choices.insert(choices.index(wide), narrow)
    return choices
