"""Readers for annotations, each made once."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from .containers import container, structure, union
from .reader import Notes, Reader, bare, name_of, unreadable
from .scalars import literal, scalar

_MOST_KNOWN = 1000
# By identity, as int | str and str | int are equal but not read alike. The annotation is kept
# with its reader, so that no other one gets its number.
_known: dict[int, tuple[Any, Reader]] = {}


def reader_of(wanted: Any) -> Reader:
    """The reader for an annotation; raises Unresolved if that names what is not there."""
    known = _known.get(id(wanted))
    if known is not None:
        return known[1]
    building = _Building()
    reader = building.reader(wanted)
    if len(_known) + len(building.made) >= _MOST_KNOWN:
        _known.clear()
    _known.update(building.made)
    _known[id(wanted)] = (wanted, reader)
    return reader


class _Building:
    """One annotation with all that it names, which may name itself."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Reader]] = {}
        """The classes among it. Nobody sees them before all is made."""
        self._under_way: dict[str, list[Reader]] = {}

    def reader(self, wanted: Any) -> Reader:
        known = _known.get(id(wanted)) or self.made.get(id(wanted))
        if known is not None:
            return known[1]
        reader = self._make(bare(wanted))
        if isinstance(wanted, type):
            self.made[id(wanted)] = (wanted, reader)
        return reader

    def _make(self, wanted: Any) -> Reader:
        origin = get_origin(wanted) or wanted
        if wanted is Any or wanted is object:
            return Reader(_as_it_is, _as_it_is)
        if origin is Union or origin is UnionType:
            return union(get_args(wanted), self.reader)
        if origin is Literal:
            return literal(wanted)
        if isinstance(origin, type) or origin is None:
            return self._of_class(wanted)
        return _not_known(wanted)

    def _of_class(self, wanted: Any) -> Reader:
        origin = get_origin(wanted) or wanted
        return scalar(origin) or container(wanted, self.reader) or self._structure(wanted)

    def _structure(self, wanted: Any) -> Reader:
        # A generic one that holds itself is another object each time, of the same text.
        key = f"{id(get_origin(wanted) or wanted)} {wanted}"
        if key in self._under_way:
            return _later(self._under_way[key])
        place: list[Reader] = []
        self._under_way[key] = place
        reader = structure(wanted, self.reader) or _not_known(wanted)
        place.append(reader)
        del self._under_way[key]
        return reader


def _as_it_is(value: Any, notes: Notes) -> Any:
    notes.untyped += 1
    return value


def _later(place: list[Reader]) -> Reader:
    """For a type that holds itself: its reader is there by the time it is called."""

    def read(value: Any, notes: Notes) -> Any:
        return place[0].read(value, notes)

    return Reader(read)


def _not_known(wanted: Any) -> Reader:
    return unreadable(
        f"cannot decode into {name_of(wanted)}: use bytes, str, dict, list, a dataclass, "
        "a msgspec.Struct or a pydantic model"
    )
