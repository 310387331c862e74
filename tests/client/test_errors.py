"""Errors travel: process pools pickle them, and some libraries copy them."""

import copy
import inspect
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from laneway import errors
from laneway.event import MessageEnd
from laneway.model import Published

TREE: list[type[errors.LanewayError]] = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.LanewayError)
]
FIELDS: dict[str, Any] = {
    "results": (Published(1, "published"), Published(None, "full")),
    "message_id": 7,
    "fence": 8,
    "sqlstate": "40001",
    "count": 3,
    "ending": MessageEnd(7, "completed", datetime(2026, 1, 1, tzinfo=UTC)),
}


def made(kind: type[errors.LanewayError]) -> errors.LanewayError:
    """With all that its own __init__ takes, if it has one."""
    if not inspect.isfunction(kind.__init__):
        return kind("what to do")
    _, _, *names = inspect.signature(kind.__init__).parameters
    return kind("what to do", *[FIELDS[name] for name in names])


@pytest.mark.parametrize("kind", TREE)
@pytest.mark.parametrize(
    "travel", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
def test_every_error_survives_pickle_and_copy(
    kind: type[errors.LanewayError], travel: Callable[[Any], Any]
) -> None:
    error = made(kind)
    error.add_note("while it rained")
    arrived = travel(error)
    assert type(arrived) is kind
    assert str(arrived) == str(error) == "what to do"
    assert arrived.args == error.args
    assert vars(arrived) == vars(error)


def test_the_fields_were_looked_at() -> None:
    found = {name for kind in TREE for name in vars(made(kind))}
    assert found == set(FIELDS)
