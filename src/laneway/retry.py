"""Retry strategies: how long a message waits after a failed attempt, and when to give it up."""

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from .durations import Duration, check_duration, to_seconds
from .errors import InvalidOption, shown
from .spelling import explains_mistakes

_LONGEST = timedelta(days=365).total_seconds()


class FailedAttempt(NamedTuple):
    """A handler raised ``error``. ``attempt`` counts from 1 since the last progress; ``age`` is the
    time since the message was published."""

    attempt: int
    error: BaseException
    age: timedelta


class Retry(Protocol):
    """Anything with this method is a strategy.

    >>> class WhenTheyAsk:
    ...     def delay(self, failed):
    ...         return getattr(failed.error, "retry_after", None)
    """

    def delay(self, failed: FailedAttempt) -> Duration | None:
        """How long to wait before the next attempt; None gives the message up."""
        ...


@dataclass(frozen=True, slots=True)
class NoRetry:
    """Give up at the first error."""

    def delay(self, failed: FailedAttempt) -> timedelta | None:
        return None


@dataclass(frozen=True, kw_only=True)
class DelayedRetry:
    """The base of the strategies below.

    ``attempts`` limits the attempts, ``within`` the time since the message was published. Errors
    of the types in ``give_up_on`` are not retried. ``jitter`` is the share of the delay that is
    random, so that what failed together is not retried together.
    The message's own ``max_attempts`` holds too.
    """

    attempts: int | None = None
    within: Duration | None = None
    give_up_on: tuple[type[BaseException], ...] = ()
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if self.attempts is not None and not (_is_int(self.attempts) and self.attempts >= 1):
            raise InvalidOption(
                f"attempts is {shown(self.attempts)}: it must be a whole number of at least 1"
            )
        if self.within is not None:
            check_duration("within", self.within)
        _check_types("give_up_on", self.give_up_on)
        if not (_is_number(self.jitter) and 0 <= self.jitter <= 1):
            raise InvalidOption(f"jitter is {shown(self.jitter)}: it must be between 0 and 1")

    def delay(self, failed: FailedAttempt) -> timedelta | None:
        if self.attempts is not None and failed.attempt >= self.attempts:
            return None
        if isinstance(failed.error, self.give_up_on):
            return None
        seconds = self.seconds(failed.attempt) * (1 - self.jitter * random.random())
        wait = timedelta(seconds=min(seconds, _LONGEST))
        if self.within is not None:
            age = failed.age + wait
            if age.total_seconds() > to_seconds(self.within):
                return None
        return wait

    def seconds(self, attempt: int) -> float:
        """The delay after this failed attempt, before jitter."""
        raise NotImplementedError


@explains_mistakes
@dataclass(frozen=True, kw_only=True)
class Constant(DelayedRetry):
    """The same delay after every attempt.

    >>> @worker.handler("poll", retry=Constant(every=10, within=timedelta(hours=1)))
    """

    every: Duration = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_duration("every", self.every)

    def seconds(self, attempt: int) -> float:
        return to_seconds(self.every)


@explains_mistakes
@dataclass(frozen=True, kw_only=True)
class Linear(DelayedRetry):
    """``initial``, then ``step`` more each time, at most ``max_delay``."""

    initial: Duration = 1.0
    step: Duration = 1.0
    max_delay: Duration = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("initial", "step", "max_delay"):
            check_duration(name, getattr(self, name))
        _check_order(self.initial, self.max_delay)

    def seconds(self, attempt: int) -> float:
        return min(
            to_seconds(self.initial) + to_seconds(self.step) * (attempt - 1),
            to_seconds(self.max_delay),
        )


@explains_mistakes
@dataclass(frozen=True, kw_only=True)
class Exponential(DelayedRetry):
    """``initial``, then ``factor`` times as long each time, at most ``max_delay``.

    >>> @worker.handler("send_receipt", retry=Exponential(initial=1, max_delay=300, attempts=8))
    """

    initial: Duration = 1.0
    factor: float = 2.0
    max_delay: Duration = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_duration("initial", self.initial)
        check_duration("max_delay", self.max_delay)
        _check_order(self.initial, self.max_delay)
        if not (_is_number(self.factor) and 1 <= self.factor < math.inf):
            raise InvalidOption(f"factor is {shown(self.factor)}: it must be at least 1")

    def seconds(self, attempt: int) -> float:
        try:
            grown = to_seconds(self.initial) * self.factor ** (attempt - 1)
        except OverflowError:
            return to_seconds(self.max_delay)
        return min(grown, to_seconds(self.max_delay))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)


def _check_order(initial: Duration, max_delay: Duration) -> None:
    if to_seconds(initial) > to_seconds(max_delay):
        raise InvalidOption(
            f"initial is {shown(initial)}, above max_delay, which is {shown(max_delay)}: raise "
            "max_delay"
        )


def _check_types(name: str, value: object) -> None:
    types = value if isinstance(value, tuple) else (None,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in types):
        raise InvalidOption(
            f"{name} is {shown(value)}: it must be a tuple of exception types, as (ValueError,)"
        )
