"""Hostile values in every parameter of every method, on every database and driver.

Each is either taken, and comes back as it was, or refused with an error that says what to do; then
nothing was written, and the caller's transaction goes on. `make fuzz` looks longer.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from laneway import LanewayError, Queue
from laneway.conformance import Harness, Target
from tests.security.calls import CALLS
from tests.security.hostile import BROKEN, BY_NAME, HOUR, HUGE, NO_TEXT, SIZE, arguments, words
from tests.security.judging import Judge, read_everything
from tests.stores import STORES, Databases

EXAMPLES = int(os.environ.get("LANEWAY_FUZZ_EXAMPLES", "80"))
ALIKE = ("PostgreSQL 16", "SQLite in memory")  # the same code as their neighbours
WORLDS = [(n, client) for n, store in STORES.items() if n not in ALIKE for client in store.clients]
# The first needs the owner's rights; the second takes no values of a user.
OWNERS = {"Queue.install_roles", "Queue.audited"}


@st.composite
def calls(draw: Any) -> tuple[str, dict[str, Any], bool]:
    name = draw(st.sampled_from(sorted(CALLS.keys() - OWNERS)))
    call = CALLS[name]
    needed = call.required | ({"every"} if name == "Queue.schedule" else set())
    return name, draw(arguments(call.parameters, frozenset(needed))), draw(st.booleans())


@pytest.fixture(scope="module", params=WORLDS, ids=", ".join)
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    name, client = request.param
    databases: Databases = request.getfixturevalue(STORES[name].fixture)
    with Harness(Target(databases.create_database(f"hostile {client}"), client)) as running:
        yield running


def test_every_parameter_of_every_method_is_tried() -> None:
    known = {name for call in CALLS.values() for name in call.parameters}
    assert known - BY_NAME.keys() == set(), "say in hostile.py what could be passed to it"
    assert len(CALLS) > 35


def test_any_value_is_taken_whole_or_refused_with_a_word(harness: Harness) -> None:
    queue = harness._open(name="hostile", upkeep_every=None, max_payload=SIZE)
    judge = Judge(queue, harness._caller)
    taken = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    @example(("Queue.channels", {"queue": BROKEN[1]}, False))
    @example(("Queue.channels", {"after": 0}, False))
    @example(("Message.progress", {"share": HUGE}, False))
    @example(("Message.progress", {"share": 1, "note": "\0"}, False))
    @example(("Message.complete", {"result": "\0"}, True))
    @example(("Queue.publish", {"payload": 1, "headers": [], "keep_result": HOUR}, False))
    def run(call: tuple[str, dict[str, Any], bool]) -> None:
        name, given_, in_transaction = call
        if harness._loop.run(judge.judge(name, given_, in_transaction)) == "accepted":
            taken.add(name)

    run()
    harness._loop.run(read_everything(queue))
    assert len(taken) > EXAMPLES // 20, "nearly all was refused: the values prove nothing"


@given(words)
@settings(max_examples=50, derandomize=True, deadline=None, database=None)
def test_any_name_of_a_schema_is_quoted_or_refused(name: object) -> None:
    """A schema is the only name that becomes an identifier."""
    try:
        with Queue("sqlite://", schema=name, upkeep_every=None) as queue:  # type: ignore[arg-type]
            queue.install()
            queue.publish(1)
            queue.complete(queue.claim())
            queue.uninstall()
    except LanewayError as error:
        assert str(error).isprintable()


@pytest.mark.parametrize("url", [*BROKEN, *NO_TEXT, "postgresql://[::1", "mysql://h:x/d"])
def test_any_url_is_refused_with_a_word(url: Any) -> None:
    with pytest.raises(LanewayError):
        Queue(url).install()
