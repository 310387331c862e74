"""Retry strategies, by themselves."""

from datetime import timedelta
from typing import Any

import pytest

from laneway.durations import CENTURY, to_seconds
from laneway.errors import InvalidOption, InvalidTime
from laneway.retry import Constant, Exponential, FailedAttempt, Linear, NoRetry, Retry


def delays(strategy: Retry, tries: int, age: timedelta = timedelta(0)) -> list[float | None]:
    found = [strategy.delay(FailedAttempt(n, ValueError("x"), age)) for n in range(1, tries + 1)]
    return [None if delay is None else to_seconds(delay) for delay in found]


def test_each_strategy_grows_as_it_says() -> None:
    assert delays(NoRetry(), 1) == [None]
    assert delays(Constant(every=3, jitter=0), 3) == [3, 3, 3]
    assert delays(Linear(initial=1, step=2, max_delay=6, jitter=0), 4) == [1, 3, 5, 6]
    assert delays(Exponential(initial=1, max_delay=10, jitter=0), 6) == [1, 2, 4, 8, 10, 10]
    assert delays(Exponential(initial=timedelta(minutes=1), jitter=0), 2) == [60, 120]


def test_attempts_and_time_are_bounded() -> None:
    assert delays(Exponential(initial=1, attempts=3, jitter=0), 4) == [1, 2, None, None]
    strategy = Constant(every=10, within=timedelta(seconds=25), jitter=0)
    assert delays(strategy, 1, timedelta(seconds=15)) == [10]
    assert delays(strategy, 1, timedelta(seconds=16)) == [None]


def test_the_error_decides() -> None:
    strategy = Constant(every=1, give_up_on=(LookupError,))
    assert strategy.delay(FailedAttempt(1, KeyError("x"), timedelta(0))) is None
    assert strategy.delay(FailedAttempt(1, ValueError("x"), timedelta(0))) is not None


def test_nothing_overflows() -> None:
    assert delays(Exponential(initial=1, factor=10, max_delay=300, jitter=0), 1)[0] == 1
    strategy = Exponential(initial=1, factor=1e200, max_delay=300, jitter=0)
    assert strategy.delay(FailedAttempt(10**6, ValueError(), timedelta(0))) == timedelta(
        seconds=300
    )
    assert Linear(step=10**9, max_delay=10**9, jitter=0).delay(
        FailedAttempt(10**9, ValueError(), timedelta(0))
    ) == timedelta(days=365)


def test_jitter_only_shortens() -> None:
    strategy = Constant(every=10, jitter=0.5)
    found = [d for _ in range(200) for d in delays(strategy, 1) if d is not None]
    assert len(found) == 200
    assert min(found) >= 5 and max(found) <= 10 and max(found) - min(found) > 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Exponential(factor=0.5),
        lambda: Constant(attempts=0),
        lambda: Constant(jitter=2),
    ],
)
def test_impossible_options_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidOption):
        make()


BAD: list[tuple[str, Any, str]] = [
    (
        "give_up_on",
        [ValueError],
        r"\[<class 'ValueError'>\]: it must be a tuple of exception types",
    ),
    ("give_up_on", ValueError, "must be a tuple"),
    ("give_up_on", (ValueError, "KeyError"), "must be a tuple"),
    ("give_up_on", (int,), "must be a tuple"),
    ("attempts", 2.5, "attempts is 2.5: it must be a whole number"),
    ("attempts", "3", "attempts is '3'"),
    ("attempts", True, "attempts is True"),
    ("jitter", None, "jitter is None"),
]


@pytest.mark.parametrize("strategy", [Constant, Linear, Exponential])
@pytest.mark.parametrize(("name", "value", "text"), BAD)
def test_what_would_fail_at_every_error_is_refused(
    strategy: Any, name: str, value: Any, text: str
) -> None:
    with pytest.raises(InvalidOption, match=text):
        strategy(**{name: value})


@pytest.mark.parametrize(
    ("strategy", "name"),
    [(Constant, "every"), (Linear, "step"), (Exponential, "max_delay"), (Exponential, "within")],
)
def test_durations_are_checked(strategy: Any, name: str) -> None:
    value: Any
    for value in ("5", [], True):
        with pytest.raises(
            InvalidTime, match=f"{name} is .*: give a number of seconds or a timedelta"
        ):
            strategy(**{name: value})
    for value in (float("nan"), float("inf"), -1, timedelta(seconds=-1), 1e300, 10**400):
        with pytest.raises(InvalidTime, match=f"{name} is .*: it must"):
            strategy(**{name: value})


def test_the_factor_is_a_number() -> None:
    value: Any
    for value in ("5", None, True):
        with pytest.raises(InvalidOption, match=f"factor is {value!r}: it must be"):
            Exponential(factor=value)


def test_within_may_be_a_century() -> None:
    assert delays(Constant(every=1, within=CENTURY, jitter=0), 1, timedelta(days=3000)) == [1]
