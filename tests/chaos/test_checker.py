"""The checker finds each kind of violation in a forged ledger, and nothing in a good one."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.dev.chaos import checker
from tests.chaos.forged_run import Forger


@pytest.fixture
def forger() -> Forger:
    made = Forger()
    made.done(1, 1, 100.0)
    return made


def test_it_imports_only_the_standard_library() -> None:
    tree = ast.parse(Path(checker.__file__).read_text())
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
    }
    assert names <= sys.stdlib_module_names


def test_a_good_run_is_good(forger: Forger) -> None:
    """Also with a redelivery after an expired lease, a retry, a dead letter and a redrive."""
    n = forger.publish(2, 200.0, max_attempts=2)
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 202.0, by="nemesis", kind="kill", target="w", span=1e9)
    forger.row(2, 2, 201.0, 205.1, "expired")
    forger.start(2, 3, 206.0, n)
    forger.settle(2, 3, 206.5, "defer")
    forger.row(2, 3, 206.0, 206.5, "retried", attempt=2, dead=True)
    forger.row(2, None, None, 207.0, "redriven", attempt=2)
    forger.start(2, 4, 208.0, n)
    forger.settle(2, 4, 208.5, "complete")
    forger.row(2, 4, 208.0, 208.5, "completed", attempt=3)
    verdict = checker.check(forger.lines, forger.dump)
    assert verdict["broken"] == {}
    assert verdict["good"]
    assert verdict["figures"]["duplicated"] == 1


def test_lost(forger: Forger) -> None:
    forger.publish(2, 200.0)
    assert forger.broken() == {"lost"}


def test_an_unknown_outcome_may_be_either(forger: Forger) -> None:
    forger.line("publish_tried", 200.0, n="u", channel="a", kind="plain", key=None, window=False)
    forger.line("publish_unknown", 200.1, n="u")
    assert forger.broken() == set()


@pytest.mark.parametrize("what", ["publish_rolled_back", "publish_refused"])
def test_what_was_undone_and_is_there(forger: Forger, what: str) -> None:
    forger.line("publish_tried", 200.0, n="u", channel="a", kind="plain", key=None, window=False)
    forger.line(what, 200.1, n="u", id=2)
    forger.start(2, 2, 201.0, "u")
    forger.settle(2, 2, 202.0, "complete")
    forger.row(2, 2, 201.0, 202.0, "completed")
    assert forger.broken() == {"unexpected"}


@pytest.mark.parametrize(("channel", "broken"), [("a", {"unexpected"}), ("b", set())])
def test_an_id_that_was_rolled_back_may_be_another_message(
    forger: Forger, channel: str, broken: set[str]
) -> None:
    """Its publisher was killed before it knew the id, and it was cancelled before it ran."""
    forger.line("publish_tried", 200.0, n="u", channel="a", kind="plain", key=None, window=False)
    forger.line("publish_rolled_back", 200.1, n="u", id=2)
    forger.line("publish_tried", 200.2, n="v", channel="b", kind="plain", key=None, window=False)
    forger.row(2, None, None, 202.0, "cancelled", channel=channel, worker=None)
    assert forger.broken() & {"unexpected"} == broken


def test_what_nobody_published(forger: Forger) -> None:
    forger.start(2, 2, 201.0, "who")
    forger.settle(2, 2, 202.0, "complete")
    forger.row(2, 2, 201.0, 202.0, "completed")
    assert forger.broken() == {"unexpected"}


def test_two_states(forger: Forger) -> None:
    forger.waits(1, 2000.0)
    assert forger.broken() == {"two_states"}


def test_finished_twice(forger: Forger) -> None:
    forger.row(1, None, None, 150.0, "cancelled")
    assert forger.broken() == {"two_states"}


def test_stuck(forger: Forger) -> None:
    forger.publish(2, 200.0)
    forger.waits(2, 200.0)
    forger.publish(3, 200.0)
    forger.waits(3, 2000.0)
    assert forger.broken() == {"stuck"}


def test_a_start_without_an_end(forger: Forger) -> None:
    n = forger.done(2, 2, 200.0)
    forger.start(2, 7, 200.5, n)
    assert forger.broken() == {"history"}


def test_a_doubled_row(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.row(2, 2, 201.0, 202.0, "deferred")
    forger.row(2, 2, 201.0, 202.0, "deferred")
    forger.waits(2, 2000.0)
    assert "history" in forger.broken()


def test_two_leases_at_once(forger: Forger) -> None:
    n = forger.done(2, 3, 200.0)
    forger.start(2, 2, 200.5, n)
    forger.row(2, 2, 200.5, 201.8, "given_back")
    assert forger.broken() == {"unexplained_duplicates"}


def test_a_start_after_the_end(forger: Forger) -> None:
    forger.start(1, 2, 105.0, forger.lines[0]["n"])
    forger.row(1, 2, 105.0, 106.0, "deferred", attempt=2)
    assert forger.broken() == {"unexplained_duplicates"}


def test_one_lease_started_twice(forger: Forger) -> None:
    forger.start(1, 1, 101.5, forger.lines[0]["n"])
    assert forger.broken() == {"unexplained_duplicates"}


def test_a_dead_letter_that_starts_without_a_redrive(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.row(2, 2, 201.0, 202.0, "failed", dead=True)
    forger.start(2, 3, 203.0, n)
    forger.settle(2, 3, 204.0, "complete")
    forger.row(2, 3, 203.0, 204.0, "completed", attempt=2)
    assert forger.broken() == {"unexplained_duplicates"}


def test_a_fence_that_falls_and_an_attempt_that_stays(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 9, 200.5, n)
    forger.row(2, 9, 200.5, 201.0, "deferred")
    forger.start(2, 8, 201.5, n)
    forger.settle(2, 8, 202.0, "complete")
    forger.row(2, 8, 201.5, 202.0, "completed", attempt=2)
    assert forger.broken() == {"fences"}
    forger.dump["history"][-1] |= {"fence": 10, "attempt": 1}
    for line in forger.lines:
        line.update({"fence": 10} if line.get("fence") == 8 else {})
    assert forger.broken() == {"fences"}


def test_a_stale_write_that_was_accepted(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 3, 211.0, n)
    forger.settle(2, 3, 212.0, "complete")
    forger.row(2, 3, 211.0, 212.0, "completed")
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 202.0, by="nemesis", kind="stop", target="w", span=6.0)
    forger.row(2, 2, 201.0, 206.0, "expired", attempt=0)
    forger.settle(2, 2, 208.0, "complete")
    assert forger.broken() == {"stale_accepted"}


def test_an_extension_that_came_too_late(forger: Forger) -> None:
    forger.line("extended", 150.0, by="w", id=1, fence=1, until=154.0, tried=149.9)
    assert forger.broken() == {"stale_accepted"}


def test_a_completion_that_nobody_asked_for(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.row(2, 2, 201.0, 202.0, "completed")
    assert forger.broken() == {"completed_unworked"}


def test_called_lost_and_alive(forger: Forger) -> None:
    n = forger.done(2, 2, 200.0)
    assert n
    forger.settle(2, 2, 201.2, "defer", "lost")
    assert forger.broken() == {"wrongly_lost"}


def _limit(forger: Forger, t: float, number: int, **terms: float) -> None:
    forger.line("policy_tried", t, by="o", number=number, channel="tight", **terms)
    forger.line("policy_set", t + 0.1, by="o", number=number)


def test_over_the_limit(forger: Forger) -> None:
    _limit(forger, 50.0, 1, concurrency=1)
    forger.done(2, 2, 200.0, channel="tight")
    forger.done(3, 3, 200.5, channel="tight")
    assert forger.broken() == {"over_limit"}


def test_a_lowered_limit_lets_running_ones_end_and_a_raised_one_holds(forger: Forger) -> None:
    _limit(forger, 50.0, 1, concurrency=2)
    forger.done(2, 2, 200.0, channel="tight")
    forger.done(3, 3, 200.2, channel="tight")
    _limit(forger, 201.5, 2, concurrency=1)
    assert forger.broken() == set()
    forger.done(4, 4, 300.0, channel="tight")
    forger.done(5, 5, 300.5, channel="tight")
    assert forger.broken() == {"over_limit"}


def test_who_waits_for_its_own_connection_holds_others_too_long(forger: Forger) -> None:
    """The connection had died while it idled: nothing comes back on it."""
    for id in (2, 3):
        n = forger.publish(id, 200.0)
        forger.start(id, id, 201.0, n)
        forger.row(id, id, 201.0, 205.0, "expired")
        forger.waits(id, 2000.0)
    assert "expired_unexplained" in forger.broken()
    forger.line("settle_unknown", 207.0, by="w", id=2, fence=2, verb="complete", error="no answer")
    assert "expired_unexplained" not in forger.broken()


def test_the_limit_counts_leases_that_ran_out(forger: Forger) -> None:
    _limit(forger, 50.0, 1, concurrency=1)
    n = forger.publish(2, 200.0, channel="tight")
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 201.5, by="nemesis", kind="kill", target="w", span=1e9)
    forger.row(2, 2, 201.0, 209.0, "expired", channel="tight")
    forger.waits(2, 2000.0)
    forger.done(3, 3, 206.0, channel="tight")
    assert forger.broken() == {"over_limit"}


def test_rate_excess(forger: Forger) -> None:
    _limit(forger, 50.0, 1, rate=1, burst=2)
    for number in range(4):
        forger.done(10 + number, 10 + number, 200.0 + number * 0.1, channel="tight")
    assert forger.broken() == {"rate_excess"}


def _behind_a_limit(forger: Forger, seconds: float, **terms: Any) -> None:
    forger.line("limit_set", 50.0, name="api", **terms)
    for number in range(3):
        at = 200.0 + number * 0.1
        n = forger.publish(10 + number, 190.0, channel=f"tenant-{number}", limits=["api"])
        forger.start(10 + number, 10 + number, at, n)
        forger.settle(10 + number, 10 + number, at + seconds, "complete")
        where = {"channel": f"tenant-{number}"}
        forger.row(10 + number, 10 + number, at, at + seconds, "completed", **where)


def test_more_run_than_a_shared_limit_lets(forger: Forger) -> None:
    _behind_a_limit(forger, 2.0, concurrency=2)
    assert forger.broken() == {"shared_limits"}


def test_more_start_than_the_rate_of_a_shared_limit_lets(forger: Forger) -> None:
    _behind_a_limit(forger, 0.01, rate=1, burst=2)
    assert forger.broken() == {"shared_limits"}


def test_what_keeps_to_a_shared_limit_breaks_nothing(forger: Forger) -> None:
    _behind_a_limit(forger, 2.0, concurrency=3, rate=1, burst=3)
    assert forger.broken() == set()


def test_what_was_leased_but_never_started_is_not_behind_a_shared_limit(forger: Forger) -> None:
    """The claim was cut off before it heard what has to wait."""
    _behind_a_limit(forger, 2.0, concurrency=3)
    forger.publish(20, 190.0, channel="tenant-9", limits=["api"])
    forger.line("fault", 200.0, by="nemesis", kind="kill", target="w", span=1e9)
    forger.row(20, 20, 200.1, 209.0, "expired", channel="tenant-9")
    forger.waits(20, 2000.0)
    assert "shared_limits" not in forger.broken()


def test_behind_a_shared_limit_is_what_was_started_not_what_was_claimed(forger: Forger) -> None:
    """It was let start when the other two had ended."""
    _behind_a_limit(forger, 2.0, concurrency=3)
    n = forger.publish(20, 190.0, channel="tenant-9", limits=["api"])
    forger.start(20, 20, 203.0, n)
    forger.settle(20, 20, 204.0, "complete")
    forger.row(20, 20, 200.5, 204.0, "completed", channel="tenant-9")
    assert "shared_limits" not in forger.broken()


def _behind_a_breaker(forger: Forger, *claims: tuple[float, float, str]) -> None:
    forger.line("limit_set", 50.0, by="o", name="api", pause=5.0)
    for number, (claimed, ended, outcome) in enumerate(claims, 10):
        n = forger.publish(number, 190.0, channel=f"tenant-{number}", limits=["api"])
        forger.start(number, number, claimed, n)
        forger.settle(number, number, ended, "complete")
        forger.row(number, number, claimed, ended, outcome, channel=f"tenant-{number}")


def test_what_starts_while_a_breaker_is_open(forger: Forger) -> None:
    _behind_a_breaker(forger, (200, 201, "failed"), (203, 204, "completed"))
    assert "breakers" in forger.broken()


def test_two_that_are_let_through_by_a_breaker_at_once(forger: Forger) -> None:
    probes = (207.0, 210.0, "completed"), (208.0, 211.0, "completed")
    _behind_a_breaker(forger, (200, 201, "failed"), *probes)
    assert "breakers" in forger.broken()


def test_what_keeps_to_a_breaker_breaks_no_rule_of_it(forger: Forger) -> None:
    old = (199.0, 203.0, "failed")  # it ran when the breaker opened
    after = (207.0, 208.0, "completed"), (209.0, 211.0, "completed"), (209.5, 211.0, "completed")
    _behind_a_breaker(forger, (200, 201, "failed"), old, *after)
    assert "breakers" not in forger.broken()


def _crowd(forger: Forger, count: int) -> None:
    forger.line("policy_tried", 50.0, by="o", number=1, channel="full", backlog=2)
    forger.line("policy_set", 50.1, by="o", number=1)
    for number in range(count):
        forger.publish(10 + number, 200.0 + number, channel="full")
        forger.waits(10 + number, 2000.0, channel="full")


def test_a_full_channel_that_takes_another(forger: Forger) -> None:
    _crowd(forger, 3)
    assert forger.broken() == {"backlog"}


def test_a_channel_with_room_that_refuses(forger: Forger) -> None:
    _crowd(forger, 2)
    forger.line("publish_tried", 300.0, n="r", channel="full", kind="plain", key=None)
    forger.line("publish_refused", 300.1, n="r", status="full")
    assert forger.broken() == set()
    forger.line("publish_tried", 150.0, n="s", channel="full", kind="plain", key=None)
    forger.line("publish_refused", 150.1, n="s", status="full")
    assert forger.broken() == {"backlog"}


@pytest.mark.parametrize("later", [2.0, 5.0])
def test_a_refusal_beside_an_end_that_waited_for_a_lock(forger: Forger, later: float) -> None:
    _crowd(forger, 1)
    forger.done(3, 3, 200.0, channel="full")
    forger.line("fault", 201.9, by="nemesis", kind="lock", target="*", span=3.0)
    forger.line("publish_tried", 202.0 + later, n="r", channel="full", kind="plain", key=None)
    forger.line("publish_refused", 202.1 + later, n="r", status="full")
    assert forger.broken() == (set() if later < 3 else {"backlog"})


@pytest.mark.parametrize("lower", [1, 20])
def test_lower_priorities_before_higher_ones(forger: Forger, lower: int) -> None:
    """One in ten may."""
    _limit(forger, 50.0, 1, concurrency=1)
    fence = 100
    for number in range(20):
        swapped = number < lower
        for id, later in ((1000 + number, swapped), (2000 + number, not swapped)):
            t = 100.0 + 10 * number
            n = forger.publish(id, t, channel="tight", priority=9 if id < 2000 else 0)
            place = fence + 2 * number + later
            start = t + 1 + 2 * later
            forger.start(id, place, start, n)
            forger.settle(id, place, start + 1, "complete")
            forger.row(id, place, start, start + 1, "completed", channel="tight")
    assert forger.broken() == ({"priorities"} if lower == 20 else set())


def test_one_publish_that_became_two(forger: Forger) -> None:
    n = forger.done(2, 2, 200.0)
    forger.start(3, 3, 201.0, n)
    forger.settle(3, 3, 202.0, "complete")
    forger.row(3, 3, 201.0, 202.0, "completed")
    assert forger.broken() == {"mixed_up"}


def test_an_answer_that_was_anothers(forger: Forger) -> None:
    n, m = forger.publish(2, 200.0), forger.publish(3, 200.0)
    for id, name in ((2, m), (3, n)):
        forger.start(id, id, 201.0, name)
        forger.settle(id, id, 202.0, "complete")
        forger.row(id, id, 201.0, 202.0, "completed")
    assert forger.broken() == {"mixed_up"}


def test_a_start_before_its_time(forger: Forger) -> None:
    forger.done(2, 2, 200.0, delay=0.9)
    assert forger.broken() == set()
    forger.done(3, 3, 200.0, delay=2.0)
    assert forger.broken() == {"too_early"}


def test_a_start_before_the_deferral_is_over(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("settle_tried", 202.0, by="w", id=2, fence=2, verb="defer", delay=2.0, saves=1)
    forger.row(2, 2, 201.0, 202.0, "deferred")
    forger.start(2, 3, 203.0, n, done=1)
    forger.settle(2, 3, 204.0, "complete")
    forger.row(2, 3, 203.0, 204.0, "completed", attempt=2)
    assert forger.broken() == {"too_early"}


def test_a_redrive_does_not_wait_for_the_delay_of_the_last_try(forger: Forger) -> None:
    n = forger.publish(2, 200.0, max_attempts=1)
    forger.start(2, 2, 201.0, n)
    forger.line("settle_tried", 202.0, by="w", id=2, fence=2, verb="defer", delay=2.0)
    forger.row(2, 2, 201.0, 202.0, "retried", dead=True)
    forger.row(2, None, None, 202.5, "redriven")
    forger.start(2, 3, 203.0, n)
    forger.settle(2, 3, 204.0, "complete")
    forger.row(2, 3, 203.0, 204.0, "completed", attempt=2)
    assert forger.broken() == set()


def test_a_saved_state_that_is_gone(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("settle_tried", 202.0, by="w", id=2, fence=2, verb="defer", saves=1)
    forger.row(2, 2, 201.0, 202.0, "deferred")
    forger.start(2, 3, 203.0, n, done=0)
    forger.settle(2, 3, 204.0, "complete")
    forger.row(2, 3, 203.0, 204.0, "completed", attempt=2)
    assert forger.broken() == {"states"}


@pytest.mark.parametrize("ended", [195.0, 203.0])
def test_an_end_at_the_wrong_time(forger: Forger, ended: float) -> None:
    n = forger.publish(2, 190.0)
    forger.start(2, 2, 191.0, n)
    forger.settle(2, 2, 200.0, "complete")
    forger.row(2, 2, 191.0, ended, "completed")
    assert forger.broken() == {"clock"}


def test_a_claim_after_its_start(forger: Forger) -> None:
    n = forger.publish(2, 190.0)
    forger.start(2, 2, 191.0, n)
    forger.settle(2, 2, 200.0, "complete")
    forger.row(2, 2, 192.0, 200.0, "completed")
    assert forger.broken() == {"clock"}


def test_a_zombie_that_goes_on(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 202.0, by="nemesis", kind="stop", target="w", span=6.0)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    forger.line("resumed_process", 208.0, by="director", target="w")
    forger.line("working", 209.0, by="w", id=2, fence=2)
    assert forger.broken() == set()
    assert checker.check(forger.lines, forger.dump)["recovery"]["zombie"]["most"] == 1.0
    forger.line("working", 213.0, by="w", id=2, fence=2)
    assert forger.broken() == {"zombies"}


def test_a_start_after_the_lease(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 207.0, n, by="worker-1.1")
    forger.line("fault", 202.0, by="nemesis", kind="stop", target="w", span=6.0)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    assert forger.broken() == {"late_starts"}


def test_a_key_that_nothing_holds(forger: Forger) -> None:
    forger.publish(9, 220.0, status="existing", key="k")
    assert forger.broken() == {"keys"}


def test_how_long_recovery_took(forger: Forger) -> None:
    n = forger.publish(2, 200.0, channel="unlimited-1.work")
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 202.0, by="nemesis", kind="kill", target="w", span=1e9)
    forger.row(2, 2, 201.0, 205.1, "expired", channel="unlimited-1.work")
    forger.line("server_back", 206.0, by="director")
    forger.start(2, 3, 206.5, n)
    forger.settle(2, 3, 207.0, "complete")
    forger.row(2, 3, 206.5, 207.0, "completed", attempt=2, channel="unlimited-1.work")
    recovery = checker.check(forger.lines, forger.dump)["recovery"]
    for name, seconds in (("killed", 4.5), ("server", 0.5)):
        figures = {"median": seconds, "p99": seconds, "most": seconds, "times": [seconds]}
        assert recovery[name] == {"count": 1, "target": 5.0, **figures}


def test_order(forger: Forger) -> None:
    forger.done(2, 5, 200.0, ordered=True)
    forger.done(3, 4, 200.5, ordered=True)
    assert forger.broken() == {"order"}


@pytest.mark.parametrize("window", [True, False])
def test_two_messages_of_one_key(forger: Forger, window: bool) -> None:
    forger.done(2, 2, 200.0, key="k", window=window)
    forger.done(3, 3, 201.0 if not window else 300.0, key="k", window=window)
    assert forger.broken() == {"keys"}


@pytest.mark.parametrize("later", [5.0, 9.0])
def test_a_key_whose_holder_was_stopped_before_its_commit(forger: Forger, later: float) -> None:
    """The end is dated when it was written; it is seen when its writer goes on."""
    ended = 202.0
    hold_a_key(forger, ended, told=ended + 6.1)
    forger.line("fault", ended + 0.1, by="nemesis", kind="stop", target="w", span=6.0)
    forger.publish(2, ended + later, status="existing", key="k")
    assert forger.broken() == (set() if later < 6 else {"keys"})


@pytest.mark.parametrize("later", [0.39, 0.6])
def test_a_key_whose_holder_committed_late(forger: Forger, later: float) -> None:
    """Without any fault, on a busy machine: what counts is when its holder was told."""
    hold_a_key(forger, 202.0, told=202.5)
    forger.publish(2, 202.0 + later, status="existing", key="k")
    assert forger.broken() == (set() if later < 0.5 else {"keys"})


def hold_a_key(forger: Forger, ended: float, told: float) -> None:
    n = forger.publish(2, 200.0, key="k")
    forger.start(2, 2, 201.0, n)
    forger.line("settle_tried", ended - 0.1, by="w", id=2, fence=2, verb="complete")
    forger.line("settled", told, by="w", id=2, fence=2)
    forger.row(2, 2, 201.0, ended, "completed")


FAILED = {"type": "ConnectionUnavailable", "state": "", "error": "no connection"}


def test_a_call_that_failed_for_no_reason(forger: Forger) -> None:
    forger.line("claim_failed", 200.0, by="m", **FAILED)
    assert forger.broken() == {"needless_errors"}
    forger.line("fault", 199.0, by="nemesis", kind="cut", target="m", span=3)
    assert forger.broken() == set()


@pytest.mark.parametrize("kind", ["kill", "idle"])
def test_what_is_no_reason_for_a_call_to_fail(forger: Forger, kind: str) -> None:
    forger.line("fault", 199.0, by="nemesis", kind=kind, target="*", span=1e9)
    forger.line("settle_unknown", 200.0, by="m", id=1, fence=1, verb="complete", **FAILED)
    assert "needless_errors" in forger.broken()


def test_a_lock_that_somebody_held_is_a_reason(forger: Forger) -> None:
    locked = {"type": "DatabaseFailed", "state": "55P03", "error": "lock timeout"}
    forger.line("operation_failed", 200.0, by="o", **locked)
    forger.line("publish_rolled_back", 200.0, n="u", id=None)  # on purpose
    assert forger.broken() == set()


def test_a_key_is_free_after_the_end(forger: Forger) -> None:
    forger.done(2, 2, 200.0, key="k")
    forger.done(3, 3, 210.0, key="k")
    assert forger.broken() == set()
    forger.publish(3, 220.0, status="existing", key="k")
    assert forger.broken() == {"keys"}


def test_an_early_expiry(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 201.5, by="nemesis", kind="kill", target="w", span=1e9)
    forger.line("extended", 202.0, by="w", id=2, fence=2, until=212.0, tried=201.9)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    assert forger.broken() == {"expired_early"}


def test_an_expiry_without_a_fault(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("fault", 201.5, by="nemesis", kind="kill", target="other", span=1e9)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    assert forger.broken() == {"expired_unexplained"}


@pytest.mark.parametrize("raised", [True, False])
def test_an_expiry_under_a_held_interpreter(forger: Forger, raised: bool) -> None:
    """A handler that had ended waits for its outcome to be written; one that runs is extended."""
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    if raised:
        forger.line("raised", 201.1, by="w", id=2, fence=2)
    hog: dict[str, object] = {"kind": "hog", "target": "w", "span": 6.0, "unstarted": True}
    forger.line("fault", 201.2, by="w", **hog)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    assert forger.broken() == (set() if raised else {"expired_unexplained"})


@pytest.mark.parametrize("fence", [2, 1])
def test_an_expiry_after_a_broken_connection(forger: Forger, fence: int) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.line("settle_unknown", 201.5, by="w", id=2, fence=fence, verb="complete", error="cut")
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    assert forger.broken() == (set() if fence == 2 else {"expired_unexplained"})


@pytest.mark.parametrize("terms", [{"id": 3}, {"unstarted": True}, {"target": "v"}, {"span": 0.1}])
def test_a_fault_excuses_only_what_it_is_about(forger: Forger, terms: dict[str, object]) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.row(2, 2, 201.0, 206.0, "expired")
    forger.waits(2, 2000.0)
    fault: dict[str, object] = {"kind": "hog", "target": "w", "span": 6.0, "by": "w"}
    forger.line("fault", 200.5, **{**fault, **terms})  # type: ignore[arg-type]
    assert forger.broken() == {"expired_unexplained"}
    forger.line("fault", 200.5, **fault)  # type: ignore[arg-type]
    assert forger.broken() == set()


@pytest.mark.parametrize(("tries", "dead"), [(1, True), (3, False)])
def test_the_budget_of_attempts(forger: Forger, tries: int, dead: bool) -> None:
    n = forger.publish(2, 200.0, max_attempts=3)
    for attempt in range(1, tries + 1):
        forger.start(2, 1 + attempt, 200.0 + attempt, n)
        forger.row(
            2, 1 + attempt, 200.0 + attempt, 200.5 + attempt, "retried", attempt=attempt,
            dead=dead and attempt == tries,
        )  # fmt: skip
    if dead:
        forger.dump["dead"].append({"id": 2, "reason": "max_attempts"})
    else:
        forger.waits(2, 2000.0)
    assert forger.broken() == {"budget"}


def test_cancelled_under_a_lease(forger: Forger) -> None:
    n = forger.publish(2, 200.0)
    forger.start(2, 2, 201.0, n)
    forger.row(2, None, None, 202.0, "cancelled")
    forger.row(2, 2, 201.0, 203.0, "deferred")
    assert forger.broken() == {"cancelled"}


def test_an_answered_cancel_that_did_nothing(forger: Forger) -> None:
    forger.line("cancel_answered", 101.0, by="o", id=1, status="cancelled")
    assert forger.broken() == {"cancelled"}


def test_effects(forger: Forger) -> None:
    n = forger.done(2, 2, 200.0, kind="effect")
    assert forger.broken() == {"effects"}
    forger.dump["effects"] = [n]
    assert forger.broken() == set()
    forger.dump["effects"] = [n, n]
    assert forger.broken() == {"effects"}


def test_results(forger: Forger) -> None:
    forger.done(2, 2, 200.0, keep=True)
    forger.dump["results"] = []
    assert forger.broken() == {"results"}
    forger.dump["results"] = [{"id": 2, "fence": 2}]
    assert forger.broken() == set()
    forger.dump["results"] = [{"id": 2, "fence": 1}]
    assert forger.broken() == {"results"}
    forger.publish(3, 2000.0)
    forger.waits(3, 2000.0)
    forger.dump["results"] = [{"id": 2, "fence": 2}, {"id": 3, "fence": 3}]
    assert forger.broken() == {"results"}


def test_what_the_sampler_saw(forger: Forger) -> None:
    forger.line("violation", 100.0, by="sampler", text="too many")
    assert forger.broken() == {"sampled"}


def test_it_runs_by_itself_and_bears_half_a_line(forger: Forger, tmp_path: Path) -> None:
    text = "\n".join(json.dumps(line) for line in forger.lines) + '\n{"what": "sta'
    (tmp_path / "p.jsonl").write_text(text)
    (tmp_path / "dump.json").write_text(json.dumps(forger.dump))
    command = [sys.executable, "-S", checker.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["figures"]["completed"] == 1


def test_flows(forger: Forger) -> None:
    forger.done(2, 2, 100.0)
    forger.done(3, 3, 200.0)
    node = {"id": 3, "n": "a", "when": "completed", "after": [2]}
    forger.line("flow", 90.0, nodes=[{"id": 2, "n": "b", "when": "completed", "after": []}, node])
    assert forger.broken() == set()
    node["when"] = "failed"  # not to be run
    assert forger.broken() == {"flows"}
    node |= {"when": "ended", "after": [2, 4]}  # nobody knows four
    assert forger.broken() == {"flows"}
    node |= {"when": "completed", "id": 5, "after": [2]}  # never begun
    assert forger.broken() == {"flows"}
    node |= {"id": 2, "after": [3]}  # too early
    assert forger.broken() == {"flows"}
    node |= {"id": 3, "after": [2]}
    added = [{"id": 3, "n": "c", "when": "completed", "after": [2]}]
    forger.line("flow_added", 100.0, adder=2, fence=1, nodes=added)  # by an attempt that was lost
    assert forger.broken() == {"flows"}
