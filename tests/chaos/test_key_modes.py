"""The checker's rules of messages that replace others with their key, and of debouncing."""

from typing import Any

import pytest

from tests.chaos.forged_run import Forger

PARKED = 95_617_584_000.0  # the year 5000


@pytest.fixture
def forger() -> Forger:
    made = Forger()
    made.done(1, 1, 100.0)
    return made


def publish(forger: Forger, id: int, t: float, status: str = "published", **more: Any) -> str:
    terms = {"key": "k", "mode": "replace", "last": True, "delay": 0.0, "bound": 0.0}
    return forger.publish(id, t, status, **(terms | more))


def unknown(forger: Forger, n: str, t: float) -> None:
    terms: dict[str, Any] = {"channel": "a", "kind": "plain", "key": "k", "window": False}
    forger.line("publish_tried", t, n=n, mode="replace", last=True, delay=0.0, bound=0.0, **terms)
    forger.line("publish_unknown", t + 0.1, n=n)


def run(
    forger: Forger,
    id: int,
    fence: int,
    t: float,
    n: str,
    verb: str = "complete",
    attempt: int = 1,
    done: int = 0,
) -> None:
    """From t on, for a second."""
    outcome = {"complete": "completed", "defer": "deferred", "fail": "failed"}[verb]
    forger.start(id, fence, t, n, done=done)
    forger.settle(id, fence, t + 1, verb)
    forger.row(id, fence, t, t + 1, outcome, attempt=attempt, dead=verb == "fail")


def test_the_newest_runs_and_one_waits_behind_it(forger: Forger) -> None:
    """Also a retry before the one behind it, and a dead letter that gives its key up."""
    publish(forger, 2, 200.0)
    second = publish(forger, 2, 201.0, "replaced")
    run(forger, 2, 2, 202.0, second, "defer")
    third = publish(forger, 2, 204.0, "replaced")
    forger.start(2, 3, 205.0, third)
    publish(forger, 3, 205.2)
    last = publish(forger, 3, 205.4, "replaced")
    publish(forger, 3, 205.6, "existing", mode="keep")
    forger.settle(2, 3, 206.0, "defer")
    forger.row(2, 3, 205.0, 206.0, "deferred", attempt=2)
    run(forger, 2, 4, 207.0, third, attempt=3)
    run(forger, 3, 5, 208.1, last, "fail")
    forger.dump["dead"].append({"id": 3, "channel": "a", "died_at": 209.1})
    run(forger, 4, 6, 211.0, publish(forger, 4, 210.0))
    assert forger.broken() == set()


def test_an_older_content_that_ran(forger: Forger) -> None:
    first = publish(forger, 2, 200.0)
    publish(forger, 2, 201.0, "replaced")
    run(forger, 2, 2, 202.0, first)
    assert forger.broken() == {"newest"}


@pytest.mark.parametrize("start", [201.02, 202.0])
def test_an_older_content_that_ran_and_was_put_back(forger: Forger, start: float) -> None:
    """Also at once, in less time than the times may be off."""
    first = publish(forger, 2, 200.0)
    second = publish(forger, 2, 201.0, "replaced")
    forger.start(2, 2, start, first)
    forger.settle(2, 2, start + 0.1, "defer")
    forger.row(2, 2, start, start + 0.1, "deferred")
    run(forger, 2, 3, 204.0, second, attempt=2)
    assert forger.broken() == {"newest"}


def test_publishes_at_the_same_time_may_come_in_any_order(forger: Forger) -> None:
    first = publish(forger, 2, 200.0)
    publish(forger, 2, 200.005, "replaced")
    run(forger, 2, 2, 202.0, first)
    assert forger.broken() == set()


@pytest.mark.parametrize("outcome", ["completed", "deferred"])
def test_a_running_message_that_was_replaced(forger: Forger, outcome: str) -> None:
    """What was acknowledged while another content ran is lost, or comes too late."""
    first = publish(forger, 2, 200.0)
    run(forger, 2, 2, 202.0, first, "complete" if outcome == "completed" else "defer")
    second = publish(forger, 2, 202.3, "replaced")
    if outcome == "deferred":
        run(forger, 2, 3, 205.0, second, attempt=2)
    assert forger.broken() == {"newest"}


@pytest.mark.parametrize("t", [200.5, 201.5])
def test_an_unknown_outcome_may_be_the_newest(forger: Forger, t: float) -> None:
    """It may also have reached the database after a later one."""
    publish(forger, 2, 200.0)
    publish(forger, 2, 201.0, "replaced")
    unknown(forger, "u", t)
    run(forger, 2, 2, 203.0, "u")
    assert forger.broken() == set()


def test_an_unknown_outcome_may_be_nothing(forger: Forger) -> None:
    n = publish(forger, 2, 200.0)
    unknown(forger, "u", 200.5)
    run(forger, 2, 2, 203.0, n)
    assert forger.broken() == set()


def test_what_was_replaced_and_cancelled(forger: Forger) -> None:
    publish(forger, 2, 200.0)
    publish(forger, 2, 201.0, "replaced")
    forger.row(2, None, None, 202.0, "cancelled")
    assert forger.broken() == set()


def test_replaced_by_what_does_not_exist(forger: Forger) -> None:
    publish(forger, 7, 200.0, "replaced")
    assert forger.broken() == {"keys"}


def test_replaced_after_its_end(forger: Forger) -> None:
    run(forger, 2, 2, 201.0, publish(forger, 2, 200.0))
    publish(forger, 2, 210.0, "replaced")
    assert forger.broken() == {"keys", "newest"}


def test_a_replacement_that_changed_nothing(forger: Forger) -> None:
    run(forger, 2, 2, 203.0, publish(forger, 2, 200.0))
    publish(forger, 2, 201.0, "existing", last=False)
    assert forger.broken() == set()
    publish(forger, 2, 202.0, "existing")
    assert forger.broken() == {"newest"}


@pytest.mark.parametrize("told", [True, False])
def test_of_one_call_the_last_one_runs(forger: Forger, told: bool) -> None:
    publish(forger, 2, 200.0)
    n = publish(forger, 2, 201.0, "existing", last=False)
    if not told:
        forger.lines.pop()
    run(forger, 2, 2, 203.0, n)
    assert forger.broken() == {"newest"}


def test_what_was_rolled_back_and_ran(forger: Forger) -> None:
    publish(forger, 2, 200.0)
    n = publish(forger, 2, 201.0, "replaced")
    forger.lines[-1] |= {"what": "publish_rolled_back"}
    run(forger, 2, 2, 203.0, n)
    assert forger.broken() == {"unexpected"}


def test_a_content_of_another_key(forger: Forger) -> None:
    publish(forger, 2, 200.0)
    publish(forger, 3, 200.0, key="j")
    forger.waits(3, 2000.0)
    unknown(forger, "u", 201.0)
    forger.lines[-2]["key"] = "j"
    run(forger, 2, 2, 203.0, "u")
    assert "mixed_up" in forger.broken()


@pytest.mark.parametrize("verb", ["complete", "defer"])
def test_one_that_began_too_early(forger: Forger, verb: str) -> None:
    """Beside the running one, or before its retry."""
    first = publish(forger, 2, 200.0)
    run(forger, 2, 2, 201.0, first, verb)
    second = publish(forger, 3, 201.2)
    run(forger, 3, 3, 201.4 if verb == "complete" else 203.0, second)
    if verb == "defer":
        run(forger, 2, 4, 205.0, first, attempt=2)
    assert forger.broken() == {"one_of_a_key"}


def test_one_that_was_published_beside_a_waiting_one(forger: Forger) -> None:
    first, second = publish(forger, 2, 200.0), publish(forger, 3, 200.5)
    run(forger, 2, 2, 201.0, first)
    run(forger, 3, 3, 202.5, second)
    assert forger.broken() == {"one_of_a_key"}


@pytest.mark.parametrize("mode", ["replace", "keep"])
def test_two_behind_a_running_one(forger: Forger, mode: str) -> None:
    """With keep none may be behind it."""
    first = publish(forger, 2, 200.0)
    run(forger, 2, 2, 200.5, first)
    second = publish(forger, 3, 200.8, mode=mode)
    run(forger, 3, 3, 202.0, second)
    if mode == "replace":
        run(forger, 4, 4, 204.0, publish(forger, 4, 201.0))
    assert forger.broken() == {"one_of_a_key"}


@pytest.mark.parametrize("later", [0.3, 11.0])
def test_an_end_that_others_saw_late(forger: Forger, later: float) -> None:
    """A lease was put back; whoever publishes before that is committed finds it running."""
    first = publish(forger, 2, 200.0)
    forger.start(2, 2, 201.0, first)
    forger.row(2, 2, 201.0, 202.0, "deferred")
    second = publish(forger, 3, 202.0 + later)
    run(forger, 2, 3, 215.0, first, attempt=2)
    run(forger, 3, 4, 216.5, second)
    assert forger.broken() == (set() if later < 1 else {"one_of_a_key"})


def test_one_that_waits_behind_nobody(forger: Forger) -> None:
    publish(forger, 2, 200.0)
    forger.waits(2, PARKED)
    assert forger.broken() == {"stuck"}
    forger.publish(3, 200.0)
    forger.waits(3, 2000.0, state="leased", fence=9, claimed_at=900.0)
    assert forger.broken() == set()


def debounce(forger: Forger, t: float, status: str = "replaced", bound: float = 10.0) -> str:
    return publish(forger, 2, t, status, mode="debounce", delay=2.0, bound=bound)


@pytest.mark.parametrize(("start", "bound"), [(202.5, 10.0), (203.2, 10.0), (202.5, 2.2)])
def test_a_debounced_message_starts_when_it_is_quiet(
    forger: Forger, start: float, bound: float
) -> None:
    debounce(forger, 200.0, "published", bound)
    run(forger, 2, 2, start, debounce(forger, 201.0, bound=bound))
    assert forger.broken() == ({"debounced"} if start < 203 and bound > 3 else set())


@pytest.mark.parametrize("bound", [1.0, 10.0])
def test_a_debounce_that_brings_an_earlier_time(forger: Forger, bound: float) -> None:
    debounce(forger, 200.0, "published")
    run(forger, 2, 2, 201.5, debounce(forger, 200.1, bound=bound))
    assert forger.broken() == (set() if bound < 2 else {"too_early", "debounced"})


def test_a_debounced_message_that_was_made_due(forger: Forger) -> None:
    debounce(forger, 200.0, "published")
    n = debounce(forger, 201.0)
    forger.line("run_now_tried", 202.2, by="o", ids=[2])
    run(forger, 2, 2, 202.5, n)
    assert forger.broken() == set()


def test_a_retry_that_was_debounced(forger: Forger) -> None:
    """Its time is what the debounce says, also if the retry had a later one."""
    first = debounce(forger, 200.0, "published", bound=4.0)
    run(forger, 2, 2, 202.0, first, "defer")
    for line in forger.lines:
        line.update({"delay": 5.0} if line["what"] == "settle_tried" else {})
    run(forger, 2, 3, 204.5, debounce(forger, 203.5, bound=4.0), attempt=2)
    assert forger.broken() == set()


@pytest.mark.parametrize("done", [0, 1])
def test_what_replaces_has_no_state(forger: Forger, done: int) -> None:
    run(forger, 2, 2, 201.0, publish(forger, 2, 200.0), "defer")
    for line in forger.lines:
        line.update({"saves": 1} if line["what"] == "settle_tried" else {})
    n = publish(forger, 2, 203.0, "replaced")
    run(forger, 2, 3, 204.0, n, attempt=2, done=done)
    assert forger.broken() == ({"states"} if done else set())


def test_what_replaces_has_all_attempts(forger: Forger) -> None:
    first = publish(forger, 2, 200.0, max_attempts=1)
    forger.start(2, 2, 201.0, first)
    forger.row(2, 2, 201.0, 202.0, "given_back")
    n = publish(forger, 2, 203.0, "replaced", max_attempts=2)
    forger.start(2, 3, 204.0, n)
    forger.settle(2, 3, 205.0, "defer")
    forger.row(2, 3, 204.0, 205.0, "retried")
    run(forger, 2, 4, 206.0, publish(forger, 2, 205.5, "replaced", max_attempts=1), attempt=2)
    assert forger.broken() == set()
