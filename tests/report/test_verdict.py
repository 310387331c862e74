"""Every kind of trouble is in the verdict's first lines, and none is where there is none."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from laneway.lake.report.page.verdict import Verdict, judge, judge_empty
from tests.report.history import HOUR, NOW, History, MadeUpFigures


def verdict_of(history: History) -> Verdict:
    return judge(MadeUpFigures(history))


def healthy(hours: float = 30, per_hour: int = 60, until: float = 0) -> History:
    history = History()
    history.add_steady(hours, per_hour, NOW - timedelta(hours=until))
    return history


def all_failed_for_good() -> History:
    """A hundred messages, each ended by NoRetry at its first attempt."""
    history = History()
    history.add_steady(0.2, 500, outcome="failed")
    return history


def all_retried() -> History:
    """Every attempt fails, no message is dead yet, in a queue that worked before."""
    history = healthy(until=1)
    history.add_steady(1, 60, outcome="retried")
    return history


def a_few_attempts_all_failed() -> History:
    history = History()
    history.add_steady(0.1, 30, outcome="retried")
    return history


def fifteen_of_300_died() -> History:
    history = History()
    history.add_steady(0.5, 570)
    history.add_steady(0.5, 30, outcome="failed")
    return history


def one_tenant_fails() -> History:
    history = healthy(per_hour=200)
    history.add_steady(3, 4, outcome="failed", channel="acme")
    return history


def two_tenants_of_forty_fail() -> History:
    history = History()
    for n in range(40):
        history.add_steady(
            6, 20, channel=f"t{n}", outcome="retried" if n in (3, 7) else "completed"
        )
    return history


def bad_deploy() -> History:
    """For twenty minutes, after days without a failure."""
    history = healthy(hours=72, until=0.33)
    history.add_steady(0.33, 60, outcome="retried", error="KeyError")
    return history


def bad_deploy_in_a_young_lake() -> History:
    history = healthy(hours=5, until=0.5)
    history.add_steady(0.5, 60, outcome="failed", error="KeyError")
    return history


def slow_growth() -> History:
    """Forty more are left every hour; nobody has waited for five minutes yet."""
    history = healthy(hours=12, per_hour=600)
    for n in range(240):
        history.waiting.append(("mail", f"tenant-{n % 9}", NOW - timedelta(seconds=n)))
    for hour in range(1, 7):
        end = NOW.replace(minute=0) - (hour - 1) * HOUR
        for n in range(40 * (7 - hour)):
            history.add(end + timedelta(seconds=20 + n / 10), wait=55)
    return history


def stall() -> History:
    """The workers were stopped two hours ago."""
    history = healthy(until=2)
    history.add_waiting(120, 2 * HOUR)
    return history


def stall_of_few() -> History:
    history = healthy(until=3, per_hour=4)
    history.add_waiting(2, 3 * HOUR)
    return history


def flood() -> History:
    """One tenant published 2,000 at once, half an hour ago; 60 start an hour."""
    history = healthy(hours=30)
    history.add_waiting(2000, 0.5 * HOUR, channel="acme")
    history.add_waiting(3, timedelta(seconds=40), channel="tenant-2")
    return history


def workers_lost() -> History:
    history = healthy()
    for n in range(12):
        history.add(NOW - timedelta(minutes=30, seconds=n), "expired", worker=f"w{n % 2}")
    return history


def poison() -> History:
    history = healthy()
    for n in range(3):
        history.add(NOW - n * HOUR, "expired", worker=f"w{n}", message=77_777)
    return history


def late_starts() -> History:
    history = healthy(hours=24, until=6)
    history.add_steady(6, 60, wait=200)
    return history


def no_arrivals() -> History:
    """A producer fell silent two hours ago."""
    return healthy(hours=120, per_hour=60, until=2.4)


TROUBLE: list[tuple[Callable[[], History], str, str, str]] = [
    (
        all_failed_for_good,
        "bad",
        "100 of 100 attempts failed, and 100 of 100 messages died",
        "Mend ValueError first",
    ),
    (all_retried, "bad", "Queue mail fails", "Mend ValueError first"),
    (a_few_attempts_all_failed, "bad", "3 of 3 attempts failed", "Mend ValueError"),
    (fifteen_of_300_died, "warn", "15 of 300 messages died", "Mend ValueError first"),
    (one_tenant_fails, "bad", "Only acme fails in queue mail: 12 of 12 attempts failed", "Mend"),
    (
        two_tenants_of_forty_fail,
        "bad",
        "Only t3, t7 fail in queue mail: 240 of 240 attempts",
        "Mend",
    ),
    (bad_deploy, "bad", "In the last hour 32 % of 59 attempts failed", "Mend KeyError first"),
    (bad_deploy_in_a_young_lake, "bad", "Queue mail fails", "Mend KeyError first"),
    (
        slow_growth,
        "warn",
        "The backlog of queue mail grows: 40 were waiting 6 hours ago, 240 now",
        "Raise the concurrency",
    ),
    (
        stall,
        "bad",
        "Queue mail stands still: 120 waiting, the oldest for 2 h",
        "Check whether workers of mail run",
    ),
    (stall_of_few, "bad", "Queue mail stands still: 2 waiting", "Check whether workers"),
    (flood, "bad", "2000 of them are of acme", "raise the concurrency"),
    (
        workers_lost,
        "warn",
        "Queue mail lost workers: 12 leases of 12 messages expired, on w0, w1",
        "killed",
    ),
    (poison, "warn", "Message 77777 (mail/send", "look at its payload"),
    (late_starts, "bad", "Queue mail misses its objective: 100 %", "since when mail waits"),
    (no_arrivals, "warn", "few messages", "a silent producer"),
]


@pytest.mark.parametrize(("make", "level", "says", "do"), TROUBLE)
def test_trouble_is_found_in_the_first_lines(
    make: Callable[[], History], level: str, says: str, do: str
) -> None:
    verdict = verdict_of(make())
    assert says in verdict.sentences[1]
    assert do in verdict.sentences[2]
    assert verdict.level == level
    assert "Nobody needs to do anything." not in verdict.sentences
    assert verdict.level_of("mail") == level, "the card of the queue has the colour of the headline"


def quiet_queue() -> History:
    return healthy(hours=3, per_hour=1)


def some_waiting() -> History:
    history = healthy()
    history.add_waiting(40, timedelta(seconds=50))
    return history


def few_retries() -> History:
    """One attempt in twenty fails, and succeeds later."""
    history = healthy(per_hour=190)
    history.add_steady(30, 10, outcome="retried", error="TimeoutError")
    return history


def always_flaky() -> History:
    """A third of the attempts has failed for days, and everything is completed in the end."""
    history = healthy(hours=96)
    history.add_steady(96, 30, outcome="retried", error="TimeoutError")
    return history


def one_lost_lease() -> History:
    history = healthy()
    history.add(NOW - HOUR, "expired", message=5)
    history.add(NOW - HOUR, "expired", message=6)
    return history


def burst_that_was_served() -> History:
    """Some hundred at once, started within seconds."""
    history = healthy()
    for n in range(300):
        history.add(NOW - HOUR + timedelta(seconds=n / 10), channel="acme", wait=20)
    return history


def cancelled_and_deferred() -> History:
    history = healthy()
    history.add_steady(3, 20, outcome="deferred")
    return history


def morning_rise() -> History:
    """Each day looks the same; more at noon than at night."""
    history = History()
    for day in range(6):
        for hour in range(24):
            end = NOW - timedelta(days=day, hours=hour)
            history.add_steady(1, 20 + 10 * (12 - abs(12 - end.hour)), end)
    return history


NONE: list[Callable[[], History]] = [
    healthy, quiet_queue, some_waiting, few_retries, always_flaky, one_lost_lease,
    burst_that_was_served, cancelled_and_deferred, morning_rise,
]  # fmt: skip


@pytest.mark.parametrize("make", NONE)
def test_no_alarm_where_there_is_no_trouble(make: Callable[[], History]) -> None:
    verdict = verdict_of(make())
    assert verdict.problems == ()
    assert verdict.level == "good" == verdict.level_of("mail")
    assert verdict.sentences[1] == "This report has found no problems."
    assert verdict.sentences[2] == "Nobody needs to do anything."


def test_a_few_dead_letters_of_many_are_named_without_an_alarm() -> None:
    history = healthy(per_hour=300)
    history.add_steady(24, 1 / 12, outcome="failed")
    verdict = verdict_of(history)
    assert verdict.level == "good"
    assert ", 2 died" in verdict.sentences[0]
    assert verdict.sentences[2] == "Dead letters to decide on when there is time: 2."


def test_an_incident_that_is_over_is_no_emergency() -> None:
    history = healthy(until=2)
    history.add_steady(1, 200, NOW - 10 * HOUR, outcome="failed")
    history.add_steady(2, 60)
    verdict = verdict_of(history)
    assert verdict.level == "warn"
    assert "It did not happen in the last hour." in verdict.sentences[1]


def test_the_trouble_of_one_queue_is_not_that_of_another() -> None:
    history = stall()
    history.add_steady(30, 60, queue="pdf")
    verdict = verdict_of(history)
    assert verdict.level == verdict.level_of("mail") == "bad"
    assert verdict.level_of("pdf") == "good"


def test_without_history_only_old_messages_are_trouble() -> None:
    assert judge_empty(0, 0.0).level == "quiet"
    assert judge_empty(10, 20.0).level == "quiet"
    verdict = judge_empty(10, 4000.0)
    assert verdict.level == "bad" and "10 messages are waiting" in verdict.sentences[1]
    assert "Start a worker" in verdict.sentences[2]
