"""Retry strategies: how long a message waits after a failed try, and when to give it up."""

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from .errors import InvalidOption, shown

Seconds = float | timedelta

_LONGEST = timedelta(days=365).total_seconds()


class Tried(NamedTuple):
    """A failed try: which one since the last progress (from 1), with what, and how long after the
    message was published."""

    attempt: int
    error: BaseException
    age: timedelta


class Retry(Protocol):
    """Anything with this method is a strategy.

    >>> class WhenTheyAsk:
    ...     def delay(self, tried):
    ...         return getattr(tried.error, "retry_after", None)
    """

    def delay(self, tried: Tried) -> timedelta | None:
        """How long to wait before the next try; None gives the message up."""
        ...


@dataclass(frozen=True, slots=True)
class NoRetry:
    """Give up at the first error."""

    def delay(self, tried: Tried) -> timedelta | None:
        return None


@dataclass(frozen=True, kw_only=True)
class Spaced:
    """What the strategies have in common.

    ``attempts`` bounds the tries, ``within`` the time since the message was published; errors of
    the types in ``give_up_on`` are not retried. ``jitter`` is the share of the delay that is
    random, so that what failed together is not tried together again. Lengths are seconds or
    timedeltas. The message's own ``max_attempts`` holds too.
    """

    attempts: int | None = None
    within: Seconds | None = None
    give_up_on: tuple[type[BaseException], ...] = ()
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if self.attempts is not None and not (_is_int(self.attempts) and self.attempts >= 1):
            raise InvalidOption(
                f"attempts is {shown(self.attempts)}: it must be a whole number of at least 1"
            )
        if self.within is not None:
            _check("within", self.within)
        _check_types("give_up_on", self.give_up_on)
        if not (_is_number(self.jitter) and 0 <= self.jitter <= 1):
            raise InvalidOption(f"jitter is {shown(self.jitter)}: it must be between 0 and 1")

    def delay(self, tried: Tried) -> timedelta | None:
        if self.attempts is not None and tried.attempt >= self.attempts:
            return None
        if isinstance(tried.error, self.give_up_on):
            return None
        seconds = self.seconds(tried.attempt) * (1 - self.jitter * random.random())
        wait = timedelta(seconds=min(seconds, _LONGEST))
        if self.within is not None:
            age = tried.age + wait
            if age.total_seconds() > _seconds(self.within):
                return None
        return wait

    def seconds(self, attempt: int) -> float:
        """The delay after this failed try, before jitter."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Constant(Spaced):
    """The same delay after every try.

    >>> @worker.handler("poll", retry=Constant(every=10, within=timedelta(hours=1)))
    """

    every: Seconds = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("every", self.every)

    def seconds(self, attempt: int) -> float:
        return _seconds(self.every)


@dataclass(frozen=True, kw_only=True)
class Linear(Spaced):
    """``first``, then ``step`` more each time, at most ``most``."""

    first: Seconds = 1.0
    step: Seconds = 1.0
    most: Seconds = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "step", "most"):
            _check(name, getattr(self, name))

    def seconds(self, attempt: int) -> float:
        return min(_seconds(self.first) + _seconds(self.step) * (attempt - 1), _seconds(self.most))


@dataclass(frozen=True, kw_only=True)
class Exponential(Spaced):
    """``first``, then ``factor`` times as long each time, at most ``most``.

    >>> @worker.handler("send_receipt", retry=Exponential(first=1, most=300, attempts=8))
    """

    first: Seconds = 1.0
    factor: float = 2.0
    most: Seconds = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("first", self.first)
        _check("most", self.most)
        if not (_is_number(self.factor) and 1 <= self.factor < math.inf):
            raise InvalidOption(f"factor is {shown(self.factor)}: it must be at least 1")

    def seconds(self, attempt: int) -> float:
        try:
            grown = _seconds(self.first) * self.factor ** (attempt - 1)
        except OverflowError:
            return _seconds(self.most)
        return min(grown, _seconds(self.most))


def _seconds(value: Seconds) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)


def _is_length(value: Seconds) -> bool:
    try:
        return (_is_number(value) or isinstance(value, timedelta)) and 0 <= _seconds(
            value
        ) < math.inf
    except OverflowError:  # an int beyond all floats
        return False


def _check(name: str, value: Seconds) -> None:
    if not _is_length(value):
        raise InvalidOption(
            f"{name} is {shown(value)}: it must be a length of time, in seconds or a timedelta"
        )


def _check_types(name: str, value: object) -> None:
    types = value if isinstance(value, tuple) else (None,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in types):
        raise InvalidOption(
            f"{name} is {shown(value)}: it must be a tuple of exception types, as (ValueError,)"
        )
