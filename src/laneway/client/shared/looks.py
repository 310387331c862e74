"""What may be asked of looks: filters of channels and of minutes."""

from datetime import datetime, timedelta
from typing import Literal, cast

from laneway.contract import BATCH
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption
from laneway.names import check_kind, check_name
from laneway.operations import MinuteFilter

from .checks import check_choice

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
_LONGEST_STEP = timedelta(days=14)


def check_flag(what: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidOption(f"{what} must be bool, not {type(value).__name__}")
    return value


def check_prefix(value: object) -> str:
    """The beginning of a name is a name, or empty."""
    return check_name("prefix", value) if value != "" else ""


def checked_minutes(
    since: datetime,
    until: datetime,
    step: Duration,
    queue: str | None,
    kind: str | None,
    by: str | None,
) -> MinuteFilter:
    step = check_duration("step", step, MINUTE, _LONGEST_STEP)
    if step % MINUTE:
        raise InvalidOption(f"step is {step}: it must be whole minutes")
    if until <= since:
        raise InvalidOption("until must be later than since")
    if (until - since) / step > BATCH:
        raise InvalidOption(f"this is more than {BATCH} steps: take a longer step or less time")
    return MinuteFilter(
        since,
        until,
        step,
        None if queue is None else check_name("queue", queue),
        None if kind is None else check_kind(kind),
        None if by is None else _by(by),
    )


def _by(value: str) -> Literal["queue", "kind"]:
    return cast(Literal["queue", "kind"], check_choice("by", value, ("queue", "kind")))
