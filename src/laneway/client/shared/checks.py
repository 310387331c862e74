"""What may be passed in: checked before anything is written."""

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import Any

from laneway.contract import BATCH
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, InvalidTime, shown
from laneway.limits import Adapt, Breaker, LimitChange, burst_for
from laneway.model import KEEP, DeadLetterFilter, Keep, Policy
from laneway.names import check_kind, check_name
from laneway.shared_limits import SharedLimitChange

SHORTEST_LEASE = timedelta(seconds=1)
LONGEST_LEASE = timedelta(days=1)
MOST_TEXT = 1000
_SHORTEST_PAUSE = timedelta(milliseconds=1)
_SHORTEST_TURN, _LONGEST_TURN = timedelta(milliseconds=1), timedelta(hours=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def check_lease(value: object, what: str = "lease") -> timedelta:
    return check_duration(what, value, SHORTEST_LEASE, LONGEST_LEASE)


def checked_pause(duration: object) -> timedelta | None:
    """How long a pause lasts; None: until it is resumed."""
    return None if duration is None else check_duration("duration", duration, _SHORTEST_PAUSE)


def checked_fairness(by: object, turn: object) -> timedelta | None:
    """By how much worker time a channel may get ahead; None: turns are by starts."""
    if by == "time":
        return check_duration("turn", 1.0 if turn is None else turn, _SHORTEST_TURN, _LONGEST_TURN)
    if by != "starts":
        raise InvalidOption(f'a queue is fair by "starts" or by "time", not by {shown(by)}')
    if turn is not None:
        raise InvalidOption('turn is for by="time": by starts, a turn is ten messages')
    return None


def check_time(what: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidTime(f"{what} must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidTime(
            f"{what} is {value.isoformat()} without a time zone: "
            "use datetime.now(timezone.utc), or .astimezone() for local time"
        )
    if value.year in (MINYEAR, MAXYEAR):
        _check_year(what, value)
    return value if type(value) is datetime else datetime.combine(value.date(), value.timetz())


def _check_year(what: str, value: datetime) -> None:
    """What is the year 9999 there may be the year 10,000 in UTC, which nobody could read; and the
    very first and last moments stand for infinity in some drivers."""
    try:
        fine = _FIRST < value.astimezone(UTC) < _LAST
    except OverflowError:
        fine = False
    if not fine:
        raise InvalidTime(
            f"{what} is {value.isoformat()}: it must lie inside of the years 1 to 9999 in UTC; "
            "leave it out if there is none"
        )


def check_delay_or_at(
    delay: Duration | None, at: datetime | None, names: tuple[str, str] = ("delay", "at")
) -> tuple[timedelta | None, datetime | None]:
    if delay is not None:
        if at is not None:
            raise InvalidTime(f"{names[0]} and {names[1]} exclude each other: give one")
        return check_duration(names[0], delay), None
    return None, None if at is None else check_time(names[1], at)


def check_number(what: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidOption(f"{what} must be an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {shown(value)}: it must be between {least} and {most}")
    return int(value)


def check_switch(what: str, value: object) -> bool:
    """The text "false" would be true."""
    if not isinstance(value, bool):
        raise InvalidOption(f"{what} is {shown(value)}: it must be True or False")
    return value


def check_limit(value: object) -> int:
    return check_number("limit", value, 1, BATCH)


def check_ids(values: Iterable[int]) -> list[int]:
    numbers = check_list("ids", values)
    return [check_number("a message id", value, 1, 2**63 - 1) for value in numbers]


def check_list(what: str, values: object) -> list[Any]:
    """Many values: a text is one, and a list of its letters is never meant."""
    if isinstance(values, str | bytes | bytearray):
        raise InvalidOption(f"{what} must be a list, not the text {shown(values)}")
    if not isinstance(values, Iterable):
        raise InvalidOption(f"{what} must be a list, not {type(values).__name__}")
    return list(values)


def check_choice(what: str, value: object, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidOption(f"{what} is {shown(value)}: use one of {', '.join(choices)}")
    return str.__str__(value)


def check_queues(values: Iterable[str]) -> tuple[str, ...]:
    listed = check_list("queues", values)
    names = tuple(dict.fromkeys(check_name("queue", value) for value in listed))
    if not names:
        raise InvalidOption("queues is empty: name at least one queue")
    return names


def check_kinds(values: Iterable[str]) -> tuple[str, ...]:
    """Sorted: claims of the same kinds share what they remember."""
    kinds = tuple(sorted({check_kind(value) for value in check_list("kinds", values)}))
    if not kinds:
        raise InvalidOption("kinds is empty: name at least one kind, or leave it out for all")
    return kinds


def check_storable(what: str, value: object, most: int = MOST_TEXT) -> str:
    """Free text for the database: what it cannot hold is replaced, not refused; what is too long
    is cut."""
    if not isinstance(value, str):
        raise InvalidOption(f"{what} must be str, not {type(value).__name__}")
    kept = value[:most].replace("\0", "\N{SYMBOL FOR NULL}")
    return kept.encode("utf-8", "replace").decode()


_ALL = DeadLetterFilter()


def selection(ids: Iterable[int] | None, by: DeadLetterFilter) -> list[int] | DeadLetterFilter:
    """Ids or filters, not both and not neither: nobody empties everything by leaving words out."""
    if ids is not None:
        if by != _ALL:
            raise InvalidOption("ids and filters exclude each other: give one")
        return check_ids(ids)
    if by == _ALL:
        raise InvalidOption("say which dead letters: ids, or at least one filter")
    return checked_filter(by)


def checked_filter(by: DeadLetterFilter) -> DeadLetterFilter:
    return DeadLetterFilter(
        None if by.queue is None else check_name("queue", by.queue),
        None if by.channel is None else check_name("channel", by.channel),
        None if by.kind is None else check_kind(by.kind),
        None if by.reason is None else check_storable("reason", by.reason),
        None if by.since is None else check_time("since", by.since),
        None if by.until is None else check_time("until", by.until),
        None if by.error_type is None else check_storable("error_type", by.error_type),
    )


# Policies, checked and completed.

_MOST = 2**63 - 1
_RATES = (1e-6, 1e9)
_WEIGHTS = (0.01, 1000)


def checked_policies(policies: Mapping[str, Policy]) -> dict[str, Policy]:
    if not isinstance(policies, Mapping):
        raise InvalidOption(
            f"policies must map channels to policies, not be {type(policies).__name__}"
        )
    return {check_name("channel", name): checked(policy) for name, policy in policies.items()}


def checked(policy: Policy) -> Policy:
    """The policy with its default burst; raises InvalidOption for what cannot be."""
    if not isinstance(policy, Policy):
        raise InvalidOption(f"a policy must be a Policy, not {type(policy).__name__}")
    if policy.paused or policy.closing:
        raise InvalidOption("paused and closing are not limits: use pause() and remove()")
    rate = None if policy.rate is None else _real("rate", policy.rate, *_RATES)
    return Policy(
        _count("concurrency", policy.concurrency, 1),
        rate,
        burst_for(rate, _count("burst", policy.burst, 1)),
        _count("backlog", policy.backlog, 0),
        _real("weight", policy.weight, *_WEIGHTS),
    )


def checked_change(change: LimitChange) -> LimitChange:
    """Raises InvalidOption for what cannot be; whether a burst alone fits is seen with the rate."""
    if not change.named:
        raise InvalidOption(
            "limit() without a limit changes nothing: name concurrency, rate, burst, backlog or "
            "weight"
        )
    for name in ("rate", "concurrency"):
        if getattr(change, name) == 0:
            raise InvalidOption(
                f"{name} is 0: pause() stops a channel, {name}=None lifts the limit"
            )
    rate = change.rate
    if rate is not KEEP and rate is not None:
        rate = _real("rate", rate, *_RATES)
    burst = change.burst if change.burst is KEEP else _count("burst", change.burst, 1)
    if rate is not KEEP and burst is not KEEP:
        burst = burst_for(rate, burst)
    return LimitChange(
        KEEP if change.concurrency is KEEP else _count("concurrency", change.concurrency, 1),
        rate,
        burst,
        KEEP if change.backlog is KEEP else _count("backlog", change.backlog, 0),
        KEEP if change.weight is KEEP else _real("weight", change.weight, *_WEIGHTS),
    )


def checked_shared_limit(
    concurrency: int | Keep | None,
    rate: float | Keep | None,
    burst: int | Keep | None,
    adapt: Adapt | Keep | None,
    breaker: Breaker | Keep | None,
) -> SharedLimitChange:
    if adapt is not KEEP and adapt is not None and not isinstance(adapt, Adapt):
        raise InvalidOption(f"adapt must be an Adapt(min=…, max=…) or None, not {shown(adapt)}")
    if breaker is not KEEP and breaker is not None and not isinstance(breaker, Breaker):
        raise InvalidOption(f"breaker must be a Breaker(…) or None, not {shown(breaker)}")
    plain = LimitChange(concurrency, rate, burst)
    if plain.named or (adapt is KEEP and breaker is KEEP):
        plain = checked_change(plain)
    return SharedLimitChange(*plain[:3], adapt, breaker)


def _count(what: str, value: int | None, least: int) -> int | None:
    return None if value is None else check_number(what, value, least, _MOST)


def _real(what: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"{what} must be a number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidOption(f"{what} is {shown(value)}: it must be between {least} and {most}")
    return float(value)


def blocks_a_loop() -> bool:
    """Whether a task of an event loop calls, so that waiting would stop the others. Notebooks run
    their cells in one, and wait for each; Playwright's sync API has a loop run around its callers,
    outside of any task."""
    if asyncio._get_running_loop() is None or "ipykernel" in sys.modules:
        return False
    return asyncio.current_task() is not None
