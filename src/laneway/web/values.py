"""Values from forms, queries and JSON, by the annotation of the parameter that takes them; and
where a list continues: opaque text in addresses, the last row for the verb.
"""

import json
import re
import types
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from laneway.durations import Duration
from laneway.errors import InvalidOption, shown
from laneway.inspection import DeadLetterPosition
from laneway.model import Keep
from laneway.operator import Operator
from laneway.schedule import Schedule

# What the lists are sorted by. The other fields of a row do not matter to what comes after it.
_KEYS: dict[type, tuple[str, ...]] = {
    DeadLetterPosition: ("died_at", "id"),
    Schedule: ("queue", "name"),
}


def write_cursor(row: Any) -> str:
    """The position after this row."""
    values = [getattr(row, name) for name in _KEYS[type(row)]]
    plain = [v.isoformat() if isinstance(v, datetime) else v for v in values]
    return urlsafe_b64encode(json.dumps(plain).encode()).decode().rstrip("=")


def read_cursor(kind: type, text: Any) -> Any:
    """A row at that position, with nothing in its other fields."""
    try:
        padded = str(text) + "=" * (-len(str(text)) % 4)
        values = dict(zip(_KEYS[kind], json.loads(urlsafe_b64decode(padded)), strict=True))
        if "died_at" in values:
            values["died_at"] = datetime.fromisoformat(values["died_at"]).astimezone(UTC)
            values["id"] = int(values["id"])
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidOption(
            f"{shown(text)} is not a position in this list: begin without after"
        ) from None
    if kind is DeadLetterPosition:
        return DeadLetterPosition(**values)
    return kind(**{field.name: values.get(field.name) for field in fields(kind)})


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_DURATION_TYPES = frozenset(get_args(Duration))
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def read_json(text: str | bytes, name: str) -> Any:
    """Raises InvalidOption with the ``name`` of what it was."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidOption(f"{name} is nested too deeply") from None
    except ValueError:
        raise InvalidOption(f"{name} must be JSON") from None


class Parameters:
    """The parameters of a verb, and how to read each."""

    def __init__(self, verb: str) -> None:
        method = getattr(Operator, verb)
        self.hints = get_type_hints(method)
        self.all = {n: p for n, p in signature(method).parameters.items() if n != "self"}

    @property
    def result(self) -> Any:
        return self.hints.get("return")

    @property
    def goes_on(self) -> str | None:
        """The parameter that asks for the next page of a list."""
        return next((name for name in ("after", "before") if name in self.all), None)

    def required(self, name: str) -> bool:
        return self.all[name].default is Parameter.empty

    def read(self, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for the method; raises InvalidOption for what it does not take."""
        unknown = sorted(set(given) - set(self.all))
        if unknown:
            raise InvalidOption(
                f"unknown: {', '.join(map(shown, unknown))}; it takes {', '.join(self.all)}"
            )
        args: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.all.items():
            if name not in given:
                if self.required(name):
                    raise InvalidOption(f"{name} is missing")
                continue
            value = convert(name, given[name], self.hints[name])
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and len(args) == len(named) == 0:
                args.append(value)
            else:
                named[name] = value
        return args, named


def convert(name: str, value: Any, hint: Any) -> Any:
    """``value`` as ``hint`` wants it. An empty text is None where None is allowed."""
    options = set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}
    if value is None or (value == "" and str not in options):
        if type(None) in options:
            return None
        raise InvalidOption(f"{name} is missing")
    options -= {type(None), Keep}
    if options >= {timedelta}:
        return _duration(name, value)
    if len(options) != 1:
        return value
    return _as(name, value, options.pop())


def _as(name: str, value: Any, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InvalidOption(f"{name} is {shown(value)}: use {', '.join(get_args(kind))}")
        return value
    if get_origin(kind) in (Iterable, list, tuple) or kind is Iterable:
        return _integers(name, value)
    if get_origin(kind) is Mapping:
        return _json(name, value)
    readers = {str: _text, int: _integer, float: _number, bool: _boolean, datetime: _time}
    if kind in readers:
        return readers[kind](name, value)
    if kind in (DeadLetterPosition, Schedule):
        return read_cursor(kind, value)
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidOption(f"{name} must be text, not {shown(value)}")
    return value


def _integer(name: str, value: Any) -> int:
    text = str(value).strip().replace(",", "").replace("_", "")
    if isinstance(value, bool) or not re.fullmatch(r"-?\d{1,19}", text):
        raise InvalidOption(f"{name} must be a whole number, not {shown(value)}")
    return int(text)


def _number(name: str, value: Any) -> float:
    try:
        return float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        raise InvalidOption(f"{name} must be a number, not {shown(value)}") from None


def _boolean(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in _TRUE + _FALSE:
        raise InvalidOption(f"{name} must be true or false, not {shown(value)}")
    return text in _TRUE


def _time(name: str, value: Any) -> datetime:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidOption(f"{name} must be like 2026-01-31T09:00:00Z: {shown(value)}") from None
    if found.tzinfo is None:
        raise InvalidOption(f"{name} needs a time zone: write 2026-01-31T09:00:00Z")
    return found


def _duration(name: str, value: Any) -> float:
    found = _DURATION.fullmatch(str(value).strip())
    if isinstance(value, bool) or found is None:
        raise InvalidOption(f"{name} must be like 90, 15m, 2h or 1d, not {shown(value)}")
    return float(found[1]) * _UNITS[found[2]]


def _integers(name: str, value: Any) -> list[int]:
    if isinstance(value, str):
        value = re.split(r"[\s,]+", value.strip())
    if not isinstance(value, list):
        value = [value]
    return [_integer(name, item) for item in value]


def _json(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return read_json(value, name)
