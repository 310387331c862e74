"""JSON values to annotated Python types, strictly: a text is no number, nothing is guessed."""

import dataclasses
import types
from base64 import b64decode
from collections.abc import Callable, Mapping
from collections.abc import Sequence as AbstractSequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

from .errors import DecodeError, shown

_LISTS = (list, set, frozenset, AbstractSequence)
_MAPS = (dict, Mapping)


def convert(value: Any, wanted: Any) -> Any:
    """``value``, as it came out of JSON, as a ``wanted``; raises DecodeError if it is none."""
    try:
        return _convert(value, wanted)
    except DecodeError:
        raise
    except RecursionError:
        raise DecodeError(f"the payload is nested too deeply for {_name(wanted)}") from None
    except (ValueError, TypeError, ArithmeticError) as error:
        raise DecodeError(f"the payload is no {_name(wanted)}: {error}") from error


def _convert(value: Any, wanted: Any) -> Any:
    if wanted is Any or wanted is object:
        return value
    origin = get_origin(wanted) or wanted
    if origin is Union or origin is types.UnionType:
        return _one_of(value, get_args(wanted))
    if origin is Literal:
        return _expect(value, value in get_args(wanted), wanted)
    if origin is types.NoneType or wanted is None:
        return _expect(value, value is None, wanted)
    if origin in _LISTS or origin is tuple:
        return _items(value, origin, get_args(wanted), wanted)
    if origin in _MAPS:
        _expect(value, isinstance(value, dict), wanted)
        item = (get_args(wanted) or (str, Any))[1]
        return value if item is Any else {k: _convert(v, item) for k, v in value.items()}
    return _scalar_or_structure(value, origin)


def _scalar_or_structure(value: Any, wanted: Any) -> Any:
    if wanted in (str, bool):
        return _expect(value, isinstance(value, wanted), wanted)
    if wanted is int:
        return _expect(value, isinstance(value, int) and not isinstance(value, bool), wanted)
    if wanted is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_expect(value, number, wanted))
    if read := _FROM_TEXT.get(wanted):
        return read(_expect(value, isinstance(value, str), wanted))
    if wanted is timedelta:
        return timedelta(seconds=_convert(value, float))
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return wanted(value)
    return _structure(value, wanted)


def _structure(value: Any, wanted: Any) -> Any:
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _dataclass(value, wanted)
    if is_typeddict(wanted):
        return _typed_dict(value, wanted)
    if hasattr(wanted, "__struct_fields__"):
        import msgspec

        return msgspec.convert(value, wanted)
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    raise DecodeError(
        f"cannot decode into {_name(wanted)}: use bytes, str, dict, list, a dataclass, "
        "a msgspec.Struct or a pydantic model"
    )


def _dataclass(value: Any, wanted: type) -> Any:
    _expect(value, isinstance(value, dict), wanted)
    hints = get_type_hints(wanted)
    fields = {f.name: f for f in dataclasses.fields(wanted) if f.init}
    given = {k: _field(v, hints[k], wanted, k) for k, v in value.items() if k in fields}
    missing = dataclasses.MISSING
    needed = [n for n, f in fields.items() if f.default is missing is f.default_factory]
    _no_missing([name for name in needed if name not in given], wanted)
    return wanted(**given)


def _typed_dict(value: Any, wanted: Any) -> Any:
    _expect(value, isinstance(value, dict), wanted)
    hints = get_type_hints(wanted)
    _no_missing([name for name in wanted.__required_keys__ if name not in value], wanted)
    return {k: _field(v, hints[k], wanted, k) for k, v in value.items() if k in hints}


def _field(value: Any, hint: Any, owner: Any, name: str) -> Any:
    try:
        return _convert(value, hint)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise DecodeError(f"{_name(owner)}.{name}: {error}") from error


def _items(value: Any, origin: Any, arguments: tuple[Any, ...], wanted: Any) -> Any:
    _expect(value, isinstance(value, list), wanted)
    build = list if origin is AbstractSequence else origin
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        _expect(value, len(value) == len(arguments), wanted)
        return tuple(_convert(v, kind) for v, kind in zip(value, arguments, strict=True))
    item = arguments[0] if arguments else Any
    return build(value if item is Any else [_convert(v, item) for v in value])


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        try:
            return convert(value, choice)
        except DecodeError:
            continue
    raise DecodeError(f"{shown(value)} is none of {', '.join(map(_name, choices))}")


def _expect(value: Any, holds: bool, wanted: Any) -> Any:
    if not holds:
        raise DecodeError(f"{shown(value)} is no {_name(wanted)}")
    return value


def _no_missing(names: list[str], wanted: Any) -> None:
    if names:
        raise DecodeError(f"{_name(wanted)} needs {', '.join(sorted(names))}")


def _name(wanted: Any) -> str:
    return getattr(wanted, "__qualname__", None) or str(wanted)


_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    Decimal: Decimal,
    UUID: UUID,
    bytes: lambda text: b64decode(text, validate=True),
}
