"""Verbs as plans that can begin anew: a deadlock or a lock that was waited for too long undoes the
whole transaction, and whoever owns it may simply repeat it."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from penstock.plan import Plan, Repeatable

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def repeatable(
    verb: Callable[Concatenate[S, P], Plan[T]],
) -> Callable[Concatenate[S, P], Plan[T]]:
    """Makes the verb's plan a :class:`penstock.plan.Repeatable`."""

    @wraps(verb)
    def start(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        def again() -> Plan[T]:
            return verb(self, *args, **kwargs)

        return Repeatable(again)

    return start
