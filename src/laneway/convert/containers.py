"""Lists, sets, tuples and mappings.

One of several types: the one that fits best, and none if two fit alike.
"""

from collections import OrderedDict, abc
from collections.abc import Callable, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any, Tuple, Unpack, get_args, get_origin  # noqa: UP035

from laneway.errors import DecodeError, shown

from .reader import REFUSALS, Build, Notes, Read, Reader, bare, expect, name_of, unreadable

LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}
MAPS: dict[Any, Callable[[dict[str, Any]], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    OrderedDict: OrderedDict,
}


def container(wanted: Any, build: Build) -> Reader | None:
    """The reader of a list, a set, a tuple or a mapping; None if it is none."""
    origin = get_origin(wanted) or wanted
    if origin in LISTS:
        return _list(wanted, LISTS[origin], build)
    if origin is tuple:
        return _tuple(wanted, build)
    if origin in MAPS:
        return _map(wanted, MAPS[origin], build)
    return None


def _list(wanted: Any, make: Callable[[list[Any]], Any], build: Build) -> Reader:
    item = build((get_args(wanted) or (Any,))[0])
    read_item = item.read

    def read(value: Any, notes: Notes) -> Any:
        expect(value, isinstance(value, list), wanted)
        return make([read_item(part, notes) for part in value])

    return Reader(read, never=item.never)


def _tuple(wanted: Any, build: Build) -> Reader:
    # Callers still write typing.Tuple, and it is not equal to tuple.
    if wanted in (tuple, Tuple):  # noqa: UP006
        return _list(wanted, tuple, build)
    kinds = get_args(wanted)
    if any(get_origin(kind) is Unpack or getattr(kind, "__unpacked__", False) for kind in kinds):
        return unreadable(f"cannot decode into {wanted}: use tuple[…, ...] or a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return _list(wanted, tuple, build)
    items = [build(kind) for kind in kinds]

    def read(value: Any, notes: Notes) -> Any:
        expect(value, isinstance(value, list) and len(value) == len(items), wanted)
        return tuple([item.read(part, notes) for item, part in zip(items, value, strict=True)])

    return Reader(read, never=next((item.never for item in items if item.never), None))


def _map(wanted: Any, make: Callable[[dict[str, Any]], Any], build: Build) -> Reader:
    key_type, item_type = get_args(wanted) or (Any, Any)
    key, item = build(key_type), build(item_type)
    if key.text is None:
        return unreadable(
            f"cannot decode into {wanted}: the keys of JSON are text, not {name_of(key_type)}; "
            "use str for them"
        )
    read_key, read_item = key.text, item.read
    as_is = make is dict and key_type in (str, Any) and item_type is Any

    def read(value: Any, notes: Notes) -> Any:
        expect(value, isinstance(value, dict), wanted)
        notes.untyped += 1
        if as_is:
            return value
        pairs = {read_key(name, notes): read_item(part, notes) for name, part in value.items()}
        return make(pairs)

    return Reader(read, never=item.never)


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
