"""Schedules between the tables and the model."""

import json
from dataclasses import fields
from datetime import timedelta
from typing import Any

from penstock.plan import Row
from penstock.schedule import Move, Schedule

from .names import data, text
from .times import length, micros, moment

_LENGTHS = {"every", "grace", "key_window", "expires_in"}
_TIMES = {"start", "anchor", "next_at", "look_at", "last_at", "tick"}
_RAW = {"payload", "priority", "max_attempts", "fired", "revision"}
_NAMES = [field.name for field in fields(Schedule)]


def schedule_of(row: Row) -> Schedule:
    return Schedule(*(_read(name, value) for name, value in zip(_NAMES, row, strict=True)))


def row_of(schedule: Schedule) -> tuple[Any, ...]:
    return tuple(_written(name, getattr(schedule, name)) for name in _NAMES)


def move_row(move: Move) -> tuple[Any, ...]:
    return tuple(_written(name, value) for name, value in move._asdict().items())


def _read(name: str, value: Any) -> Any:
    if name == "headers":
        return json.loads(value) if value else {}
    if value is None or name in _RAW:
        return value
    if name in _LENGTHS:
        return timedelta(microseconds=int(value))
    if name in _TIMES:
        return moment(value)
    return bool(value) if name == "paused" else text(value)


def _written(name: str, value: Any) -> Any:
    if name == "headers":
        return json.dumps(value).encode() if value else None
    if value is None or name in _RAW or name == "paused":
        return value
    if name in _LENGTHS:
        return length(value)
    return micros(value) if name in _TIMES else data(value)
