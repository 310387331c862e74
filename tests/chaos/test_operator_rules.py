"""The checker finds what pauses, cancels, run_now and bulk operations must never cause."""

from typing import Any

import pytest

from tests.chaos.forged_run import Forger

PAUSED = [
    {"queue": "q", "kind": None, "channel": "a"},
    {"queue": "q", "kind": "plain", "channel": None},
    {"queue": "q", "kind": None, "channel": None},
]


@pytest.fixture
def forger() -> Forger:
    """Its message was claimed at 101."""
    made = Forger()
    made.done(1, 1, 100.0)
    made.dump["history"][0] |= {"queue": "q", "kind": "plain"}
    return made


def _pause(forger: Forger, scope: dict[str, Any], since: float, seconds: float | None) -> None:
    forger.line("pause_tried", since - 0.1, by="o", seconds=seconds, **scope)
    forger.line("pause_set", since, by="o", seconds=seconds, **scope)


@pytest.mark.parametrize("scope", PAUSED)
@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_start_of_what_is_paused(
    forger: Forger, scope: dict[str, Any], seconds: float | None
) -> None:
    _pause(forger, scope, 100.5, seconds)
    forger.line("resume_tried", 110.0, by="o", **scope)
    assert forger.broken() == {"paused_starts"}


@pytest.mark.parametrize("scope", PAUSED)
def test_a_start_between_two_pauses(forger: Forger, scope: dict[str, Any]) -> None:
    _pause(forger, scope, 99.0, 1.5)
    _pause(forger, scope, 99.2, None)
    forger.line("resume_tried", 100.9, by="o", **scope)
    _pause(forger, scope, 101.1, None)
    assert forger.broken() == set()


def test_a_paused_kind_is_put_back(forger: Forger) -> None:
    _pause(forger, PAUSED[1], 90.0, None)
    forger.line("resume_tried", 100.0, by="o", **PAUSED[1])
    forger.publish(2, 94.0)
    forger.row(2, 2, 95.0, 95.1, "given_back", queue="q", kind="plain")
    forger.waits(2, 2000.0)
    assert forger.broken() == set()


def test_what_was_made_due_and_waits(forger: Forger) -> None:
    forger.publish(2, 200.0, delay=5000.0)
    forger.waits(2, 5200.0)
    forger.line("run_now_tried", 210.0, by="o", ids=[2])
    assert forger.broken() == set()
    forger.line("run_now_answered", 210.1, by="o", id=2, status="due")
    assert forger.broken() == {"made_due"}


def test_what_was_made_due_may_start_at_once(forger: Forger) -> None:
    n = forger.publish(2, 200.0, delay=5000.0)
    forger.start(2, 2, 211.0, n)
    forger.settle(2, 2, 212.0, "complete")
    forger.row(2, 2, 211.0, 212.0, "completed")
    assert forger.broken() == {"too_early"}
    forger.line("run_now_tried", 210.0, by="o", ids=[2])
    assert forger.broken() == set()


@pytest.mark.parametrize(("asked", "found"), [(202.0, {"cancels_ignored"}), (230.0, set())])
def test_a_handler_that_was_not_cancelled(forger: Forger, asked: float, found: set[str]) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n, by="worker-1")
    forger.line("cancel_answered", asked, by="o", id=2, status="requested")
    forger.settle(2, 2, 240.0, "complete")
    forger.row(2, 2, 201.0, 240.0, "completed", worker="worker-1")
    assert forger.broken() == found


def test_a_start_after_the_cancellation(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.row(2, None, None, 201.0, "cancelled", worker=None)
    forger.start(2, 2, 202.0, n)
    forger.row(2, 2, 202.0, 203.0, "given_back")
    assert forger.broken() == {"cancelled"}


@pytest.fixture
def operated(forger: Forger) -> Forger:
    """A redrive of one letter of two; the other one died later."""
    wanted = {"queue": "q", "channel": "f"}
    for id in (2, 3):
        forger.publish(id, 200.0, channel="f", max_attempts=0)
    forger.row(2, None, None, 220.0, "redriven", **wanted)
    forger.waits(2, 2000.0)
    forger.dump["dead"].append({"id": 3, "died_at": 221.0, "reason": "no", **wanted})
    forger.line("bulk_started", 219.0, by="o", id=1, action="redrive", total=1)
    terms = {"total": 1, "done": 1, "state": "done", "started_at": 219.0}
    forger.dump["operations"] = [{"id": 1, "action": "redrive", "wanted": wanted, **terms}]
    return forger


def test_a_bulk_operation(operated: Forger) -> None:
    assert operated.broken() == set()


@pytest.mark.parametrize(
    "change", [{"done": 0}, {"done": 2}, {"state": "running"}, {"started_at": 222.0}, {"id": 2}]
)
def test_a_bulk_operation_that_is_wrong(operated: Forger, change: dict[str, Any]) -> None:
    operated.dump["operations"][0] |= change
    assert operated.broken() == {"operations"}


@pytest.mark.parametrize("told", [True, False])
def test_a_letter_that_was_committed_after_the_operation_had_begun(
    operated: Forger, told: bool
) -> None:
    """Whoever takes an expired lease back tells nobody when that was committed."""
    outcome = "failed" if told else "expired"
    operated.row(3, 3, 210.0, 215.0, outcome, dead=True, channel="f", queue="q")
    operated.line("fault", 210.5, by="nemesis", kind="kill", target="w", span=1e9)
    operated.dump["dead"][0]["died_at"] = 215.0
    if told:
        operated.settle(3, 3, 215.0, "fail")
    assert ("operations" in operated.broken()) == told
