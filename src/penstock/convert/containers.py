"""Lists, sets, tuples and mappings."""

from collections import OrderedDict, abc
from collections.abc import Callable
from typing import Any, Tuple, Unpack, get_args, get_origin  # noqa: UP035

from .reader import Build, Notes, Reader, expect, name_of, unreadable

_LISTS: dict[Any, Callable[[list[Any]], Any]] = {
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
_MAPS: dict[Any, Callable[[dict[str, Any]], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    OrderedDict: OrderedDict,
}


def container(wanted: Any, build: Build) -> Reader | None:
    """The reader of a list, a set, a tuple or a mapping; None if it is none."""
    origin = get_origin(wanted) or wanted
    if origin in _LISTS:
        return _list(wanted, _LISTS[origin], build)
    if origin is tuple:
        return _tuple(wanted, build)
    if origin in _MAPS:
        return _map(wanted, _MAPS[origin], build)
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
