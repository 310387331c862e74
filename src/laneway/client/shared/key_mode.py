"""on_duplicate and debounce_for, as the caller writes them."""

from datetime import timedelta
from typing import get_args

from laneway.durations import check_duration
from laneway.errors import InvalidOption
from laneway.model import KeyMode, OnDuplicate

from .checks import check_choice

_DELAYS = 10
"""How many delays a message may be debounced, if the caller says nothing else."""


def key_mode(
    key: str | None, on_duplicate: object, delay: timedelta | None, debounce_for: object
) -> KeyMode | None:
    mode = check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
    if debounce_for is not None:
        debounce_for = check_duration("debounce_for", debounce_for)
    if mode != "debounce":
        if debounce_for is not None:
            raise InvalidOption('debounce_for belongs to on_duplicate="debounce": give that too')
        if mode == "keep":
            return None
    if key is None:
        raise InvalidOption(f"on_duplicate={mode!r} says what a key does: give a key too")
    if mode == "replace":
        return KeyMode(None)
    if not delay:
        raise InvalidOption(
            'on_duplicate="debounce" moves the due time to the delay from now: give a delay'
        )
    if debounce_for is None:
        return KeyMode(delay * _DELAYS)
    return KeyMode(check_duration("debounce_for", debounce_for, delay))
