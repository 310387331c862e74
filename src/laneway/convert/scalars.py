"""Texts, numbers and what is written as one: times, decimals, enums, literals."""

from base64 import b64decode
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, get_args
from uuid import UUID

from laneway.errors import DecodeError, InvalidPayload, shown
from laneway.to_json import plain

from .reader import Notes, Read, Reader, expect, one_of, unreadable


def scalar(wanted: Any) -> Reader | None:
    """The reader of a class for a single value; None if it is none."""
    if known := _SCALARS.get(wanted):
        return known
    return _enum(wanted) if issubclass(wanted, Enum) else None


def literal(wanted: Any) -> Reader:
    choices = get_args(wanted)
    if any(isinstance(choice, bytes) for choice in choices):
        return unreadable(f"cannot decode into {wanted}: use texts, numbers or an enum")
    written = _written(choices)

    def read(value: Any, notes: Notes) -> Any:
        found = _found(value, written)
        expect(value, bool(found), wanted)
        return found[0]

    return Reader(read, read if any(isinstance(choice, str) for choice in choices) else None)


def _enum(wanted: type[Enum]) -> Reader:
    written = _written(wanted)

    def read(value: Any, notes: Notes) -> Any:
        if found := _found(value, written):
            return found[0]
        expect(value, not isinstance(value, bool), wanted)
        return wanted(value)  # flags together, and what its _missing_ knows

    return Reader(read, read if issubclass(wanted, str) else None)


def _written(choices: Iterable[Any]) -> list[tuple[Any, Any]]:
    """What each choice is in JSON, with the choice."""
    pairs = []
    for choice in choices:
        with suppress(InvalidPayload):  # nor can it be published
            pairs.append((plain(choice), choice))
    return pairs


def _found(value: Any, written: list[tuple[Any, Any]]) -> list[Any]:
    # By type too: 1 is True for Python, not for JSON.
    return [choice for form, choice in written if type(form) is type(value) and form == value]


def _text(value: Any, notes: Notes) -> Any:
    return expect(value, isinstance(value, str), str)


def _bool(value: Any, notes: Notes) -> Any:
    return expect(value, isinstance(value, bool), bool)


def _int(value: Any, notes: Notes) -> Any:
    return expect(value, isinstance(value, int) and not isinstance(value, bool), int)


def _float(value: Any, notes: Notes) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(expect(value, number, float))


def _timedelta(value: Any, notes: Notes) -> timedelta:
    return timedelta(seconds=_float(value, notes))


def _none(value: Any, notes: Notes) -> None:
    expect(value, value is None, NoneType)


def _from_text(wanted: type, parse: Callable[[str], Any]) -> Read:
    def read(value: Any, notes: Notes) -> Any:
        expect(value, isinstance(value, str), wanted)
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:
            raise DecodeError(f"{shown(value)} is not {one_of(wanted)}") from error

    return read


_SCALARS: dict[Any, Reader] = {
    str: Reader(_text, _text),
    bool: Reader(_bool),
    int: Reader(_int),
    float: Reader(_float),
    timedelta: Reader(_timedelta),
    NoneType: Reader(_none),
    None: Reader(_none),
    datetime: Reader(_from_text(datetime, datetime.fromisoformat)),
    date: Reader(_from_text(date, date.fromisoformat)),
    time: Reader(_from_text(time, time.fromisoformat)),
    Decimal: Reader(_from_text(Decimal, Decimal)),
    UUID: Reader(_from_text(UUID, UUID)),
    bytes: Reader(_from_text(bytes, lambda text: b64decode(text, validate=True)), raw=True),
}
