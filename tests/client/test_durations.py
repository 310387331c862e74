"""Every duration is a timedelta or a number of seconds, everywhere alike."""

import inspect
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

import laneway
from laneway import Defer, NewMessage, Queue, Worker
from laneway.durations import CENTURY, check_duration, to_seconds
from laneway.errors import InvalidTime
from laneway.retry import Constant, Exponential, Linear

_MODULES = (
    *("laneway", "laneway.client", "laneway.testing", "laneway.spark", "laneway.lake"),
    "laneway.integrations.sqlalchemy",
    "laneway.integrations.asgi",
)
# Made by hand; the others are answers, in which a duration is always a timedelta.
_MADE = {"Queue", "AsyncQueue", "Worker", "NewMessage", "Defer", "Fail", "Policy", "Objective"} | {
    "Throttled",
    "Constant",
    "Linear",
    "Exponential",
}


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in map(import_module, _MODULES):
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            if inspect.isclass(found) and found.__module__.startswith("laneway"):
                for member, function in inspect.getmembers(found, inspect.isfunction):
                    if not member.startswith("_") or (member == "__init__" and name in _MADE):
                        yield f"{name}.{member}", function
            elif inspect.isfunction(found):
                yield name, found


def durations(function: Callable[..., Any]) -> list[str]:
    """Its parameters that are annotated with a timedelta."""
    return [name for name, kind in _hints(function).items() if timedelta in _parts(kind)]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    known = {name: getattr(laneway, name) for name in laneway.__all__}
    while True:
        try:
            hints = typing.get_type_hints(function, localns=known)
        except NameError as error:  # imported for annotations only
            known[str(error.name)] = Any
        else:
            hints.pop("return", None)
            return hints


def _parts(kind: Any) -> list[Any]:
    return [kind, *typing.get_args(kind)]


FUNCTIONS = dict(public_functions())


def test_no_parameter_takes_only_a_timedelta() -> None:
    found = {
        f"{name}({parameter}=)"
        for name, function in FUNCTIONS.items()
        for parameter in durations(function)
        if float not in _parts(_hints(function)[parameter])
    }
    assert found == set()
    assert sum(len(durations(function)) for function in FUNCTIONS.values()) > 60


def test_numbers_are_seconds() -> None:
    assert check_duration("x", 90) == check_duration("x", 90.0) == timedelta(seconds=90)
    assert check_duration("x", 0.25) == timedelta(milliseconds=250)
    assert check_duration("x", timedelta(minutes=1)) == timedelta(minutes=1)
    assert check_duration("x", 0) == timedelta(0)
    assert check_duration("x", CENTURY) == CENTURY
    assert to_seconds(5) == to_seconds(timedelta(seconds=5)) == 5.0


def test_a_subclass_comes_out_plain() -> None:
    class Long(timedelta):
        pass

    assert type(check_duration("x", Long(seconds=5))) is timedelta


SENTENCES: list[tuple[Any, str]] = [
    (
        "5",
        "delay is '5': give a number of seconds or a timedelta, such as timedelta(minutes=5)",
    ),
    (
        True,
        "delay is True: give a number of seconds or a timedelta, such as timedelta(minutes=5)",
    ),
    (
        [],
        "delay is []: give a number of seconds or a timedelta, such as timedelta(minutes=5)",
    ),
    (float("nan"), "delay is nan: it must be a finite number of seconds"),
    (float("inf"), "delay is inf: it must be a finite number of seconds"),
    (-1, "delay is -1 seconds: it must not be negative or longer than a century"),
    (1e300, "delay is 1e+300 seconds: it must not be negative or longer than a century"),
    (
        timedelta(0, -1),
        "delay is -1 day, 23:59:59: it must not be negative or longer than a century",
    ),
]


@pytest.mark.parametrize(("value", "sentence"), SENTENCES)
def test_the_error_is_one_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(InvalidTime) as raised:
        check_duration("delay", value)
    assert str(raised.value) == sentence


def test_a_lease_has_its_own_range() -> None:
    with pytest.raises(InvalidTime, match=r"lease is 0.5 seconds: .* between 1 second and 1 day$"):
        Queue("sqlite:///:memory:", lease=0.5)


_NEEDED: dict[str, Any] = {
    "publish": {"payload": 1, "key": "k"},
    "schedule": {"name": "n", "key": "k", "every": 60},
    "wait": {"message_id": 1},
    "once": {"connection": object(), "key": "k"},
    "redrive": {"ids": [1]},
    **{name: {"messages": []} for name in ("defer", "extend", "give_back")},
}


def _bad_calls() -> Iterator[Any]:
    for owner, names in (
        (lambda q: q, ("publish", "claim", "events", "wait", "configure", "schedule")),
        (lambda q: q, ("defer", "extend", "give_back", "once")),
        (lambda q: q.topic("t"), ("publish",)),
        (lambda q: q.dead_letters, ("redrive",)),
    ):
        with Queue("sqlite:///:memory:") as queue:
            target = owner(queue)  # type: ignore[no-untyped-call]
            for name in names:
                for parameter in durations(getattr(type(target), name)):
                    yield pytest.param(owner, name, parameter, id=f"{name} {parameter}")


@pytest.mark.parametrize(("owner", "name", "parameter"), list(_bad_calls()))
def test_every_method_refuses_what_is_none(
    owner: Callable[[Queue], Any], name: str, parameter: str
) -> None:
    with Queue("sqlite:///:memory:") as queue:
        queue.install()
        function = getattr(owner(queue), name)
        for bad in ("5", True, float("nan"), -1, timedelta(seconds=-1)):
            with pytest.raises(InvalidTime, match=f"^{parameter} "):
                function(**(_NEEDED.get(name, {}) | {parameter: bad}))


def test_numbers_and_timedeltas_do_the_same() -> None:
    with Queue("sqlite:///:memory:", lease=20, upkeep_every=0.5) as queue:
        queue.install()
        for delay, window in ((3600, 60.0), (timedelta(hours=1), timedelta(minutes=1))):
            queue.publish(1, delay=delay, expires_in=7200, key=f"{delay}", key_window=window)
        one, two = queue.messages()
        assert one.due and two.due and abs(one.due - two.due) < timedelta(minutes=1)
        assert one.due > queue.clock() + timedelta(minutes=59)
        queue.publish(2)
        (message,) = queue.claim(lease=300)
        assert message.until - message.claimed_at == timedelta(seconds=300)
        assert message.extend(600) > message.claimed_at + timedelta(seconds=500)
        message.defer(0)
        (message,) = queue.claim()
        assert message.until - message.claimed_at == timedelta(seconds=20)
        message.give_back(0.001)
        schedule = queue.schedule("s", every=90, grace=5)
        assert (schedule.every, schedule.grace) == (timedelta(seconds=90), timedelta(seconds=5))
        assert queue.configure(backoff_initial=2).backoff_initial == timedelta(seconds=2)
        queue.publish_many([NewMessage(3, delay=10)])


def test_workers_and_strategies_take_both() -> None:
    with Queue("sqlite:///:memory:") as queue:
        for lease, grace in ((20, 5), (timedelta(seconds=20), timedelta(seconds=5))):
            worker = Worker(queue, lease=lease, grace=grace, unhandled_delay=1, max_runtime=60)
            worker.handler("a", timeout=30)(lambda payload: None)
            worker.handler("b", timeout=timedelta(seconds=30))(lambda payload: None)
            assert worker._options.lease == timedelta(seconds=20)
    minute = timedelta(minutes=1)
    for strategy, name in ((Constant, "every"), (Linear, "step"), (Exponential, "initial")):
        assert strategy(**{name: minute}).seconds(2) == strategy(**{name: 60}).seconds(2)  # type: ignore[arg-type]
    assert Defer(5).delay == 5
