"""Lists, sets, tuples and mappings.

One of several types: the one that fits best, and none if two fit alike.
"""

import dataclasses
from collections import OrderedDict, abc
from collections.abc import Callable, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any, Tuple, Unpack, get_args, get_origin, is_typeddict  # noqa: UP035

from laneway.errors import DecodeError, shown
from laneway.to_json import is_model_class, read_model

from .reader import (
    REFUSALS,
    Build,
    Notes,
    Read,
    Reader,
    bare,
    expect,
    hints_of,
    name_of,
    told,
    unreadable,
    unresolved,
)

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
            raise DecodeError(f"{shown(value)} is not one of {names}")
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


# Dataclasses, typed dicts, named tuples, structs and models.


def structure(wanted: Any, build: Build) -> Reader | None:
    """The reader of a class with fields; None if it is none."""
    origin = get_origin(wanted) or wanted
    if is_typeddict(origin):
        return _typed_dict(wanted, origin, build)
    if not isinstance(origin, type):
        return None
    if dataclasses.is_dataclass(origin):
        return _dataclass(wanted, origin, build)
    if issubclass(origin, tuple) and hasattr(origin, "_field_defaults"):
        return _named_tuple(wanted, origin, build)
    if hasattr(origin, "__struct_fields__"):
        return _struct(wanted, origin)
    if is_model_class(origin):
        return Reader(_model(origin))
    return None


def _dataclass(wanted: Any, origin: Any, build: Build) -> Reader:
    hints = hints_of(wanted)
    fields = dataclasses.fields(origin)
    missing = dataclasses.MISSING
    given = [field for field in fields if field.init]
    needed = [f.name for f in given if f.default is missing is f.default_factory]
    readers = {field.name: build(hints[field.name]) for field in given}
    computed = frozenset(field.name for field in fields if not field.init)
    read_fields = _fields(origin, readers, needed, computed)

    def read(value: Any, notes: Notes) -> Any:
        return origin(**read_fields(value, notes))

    return Reader(read, never=_unpassable(origin, hints) or _never(origin, readers, needed))


def _unpassable(origin: Any, hints: dict[str, Any]) -> str | None:
    for name, hint in hints.items():
        if isinstance(hint, dataclasses.InitVar) and not hasattr(origin, name):
            return f"{name_of(origin)}.{name} is an InitVar, which is not stored: give it a default"
    return None


def _typed_dict(wanted: Any, origin: Any, build: Build) -> Reader:
    readers = {name: build(hint) for name, hint in hints_of(wanted).items()}
    needed = sorted(origin.__required_keys__)
    return Reader(_fields(origin, readers, needed), never=_never(origin, readers, needed))


def _named_tuple(wanted: Any, origin: Any, build: Build) -> Reader:
    """It is written as an array, as every tuple."""
    hints = hints_of(wanted)
    names: tuple[str, ...] = origin._fields
    readers = {name: build(hints.get(name, Any)) for name in names}
    needed = [name for name in names if name not in origin._field_defaults]

    def read(value: Any, notes: Notes) -> Any:
        fits = isinstance(value, list) and len(needed) <= len(value) <= len(names)
        expect(value, fits, origin)
        notes.absent += len(names) - len(value)
        pairs = zip(names, value, strict=False)
        return origin(*[_field(readers[name], part, notes, origin, name) for name, part in pairs])

    return Reader(read, never=_never(origin, readers, needed))


def _struct(wanted: Any, origin: Any) -> Reader:
    import msgspec

    try:
        msgspec.json.Decoder(wanted)
    except NameError as error:
        raise unresolved(origin, error) from error
    except TypeError as error:
        return unreadable(f"cannot decode into {name_of(origin)}: {error}")
    names = origin.__struct_encode_fields__
    known = {*names, origin.__struct_config__.tag_field}

    def read(value: Any, notes: Notes) -> Any:
        result = msgspec.convert(value, wanted)
        if isinstance(value, dict):  # an array_like one is written as an array
            notes.dropped += sum(key not in known for key in value)
            notes.absent += sum(name not in value for name in names)
        return result

    return Reader(read)


def _model(origin: Any) -> Read:
    def read(value: Any, notes: Notes) -> Any:
        result = read_model(value, origin)
        if isinstance(value, dict) and not origin.__pydantic_root_model__:
            used = len(result.model_fields_set) + len(origin.model_computed_fields)
            notes.dropped += max(0, len(value) - used)
            notes.absent += len(origin.model_fields.keys() - result.model_fields_set)
        return result

    return read


def _fields(
    origin: Any,
    readers: dict[str, Reader],
    needed: list[str],
    computed: frozenset[str] = frozenset(),
) -> Read:
    """An object's values by name; what the class does not know is left out."""

    def read(value: Any, notes: Notes) -> dict[str, Any]:
        expect(value, isinstance(value, dict), origin)
        given = {}
        for name, part in value.items():
            if reader := readers.get(name):
                given[name] = _field(reader, part, notes, origin, name)
            elif name not in computed:
                notes.dropped += 1
        if missing := [name for name in needed if name not in given]:
            raise DecodeError(f"{name_of(origin)} needs {', '.join(sorted(missing))}")
        notes.absent += len(readers) - len(given)
        return given

    return read


def _field(reader: Reader, value: Any, notes: Notes, owner: Any, name: str) -> Any:
    try:
        return reader.read(value, notes)
    except REFUSALS as error:
        raise DecodeError(f"{name_of(owner)}.{name}: {told(error)}") from error


def _never(origin: Any, readers: dict[str, Reader], needed: list[str]) -> str | None:
    """A field with a default may be left out."""
    for name in needed:
        if why := readers[name].never:
            return f"{name_of(origin)}.{name}: {why}"
    return None
