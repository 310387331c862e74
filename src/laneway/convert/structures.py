"""Classes with fields: dataclasses, TypedDicts, NamedTuples, msgspec's and pydantic's."""

import dataclasses
from typing import Any, get_origin, is_typeddict

from laneway.errors import DecodeError
from laneway.to_json import is_model_class, read_model

from .reader import (
    REFUSALS,
    Build,
    Notes,
    Read,
    Reader,
    expect,
    hints_of,
    name_of,
    told,
    unreadable,
    unresolved,
)


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
