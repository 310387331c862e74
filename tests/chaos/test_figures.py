"""The checker adds up figures by minute and stats itself, and finds what differs."""

from typing import Any

import pytest

from laneway.dev.chaos import checker
from tests.chaos.forged_run import Forger

COUNTS = ("published", "started", "dead", *checker.COUNTED)


def _minute(at: float, **counts: Any) -> dict[str, Any]:
    times = {"waits": [0] * 13, "runs": [0] * 13}
    base = {"at": round(at * 1e6), "queue": "q", "kind": "plain", "exact": True}
    return base | dict.fromkeys(COUNTS, 0) | times | counts


def _times(*buckets: int) -> list[int]:
    return [buckets.count(bucket) for bucket in range(13)]


@pytest.fixture
def forger() -> Forger:
    """One message published in minute 60, started in 120 after it had waited for 19 s, and
    completed 61 s later in minute 180; one dead letter; figures that say so."""
    made = Forger()
    places = {"queue": "q", "kind": "plain"}
    n = made.publish(1, 100.0, **places)
    made.start(1, 1, 119.5, n)
    made.settle(1, 1, 180.5, "complete")
    micros = [100_000_000, 100_000_000, 119_500_000, None, 180_500_000]
    made.row(1, 1, 119.5, 180.5, "completed", times=micros, **places)
    m = made.publish(2, 110.0, **places)
    made.start(2, 2, 130.0, m)
    made.settle(2, 2, 130.5, "fail")
    micros = [110_000_000, 110_000_000, 130_000_000, 130_400_000, 130_500_000]
    made.row(2, 2, 130.0, 130.5, "failed", times=micros, dead=True, **places)
    made.dump["dead"].append({"id": 2, "channel": "a", "reason": "failed", **places})
    of_first = {"started": 1, "published": 2}
    died = {"started": 1, "failed": 1, "dead": 1, "waits": _times(7), "runs": _times(2)}
    done = {"completed": 1, "waits": _times(7), "runs": _times(8)}
    hour = {**of_first, "started": 2, "failed": 1, "dead": 1, "completed": 1}
    made.dump["minutes"] = {
        "minute": [_minute(60, **of_first), _minute(120, **died), _minute(180, **done)],
        "hour": [_minute(0, **hour, waits=_times(7, 7), runs=_times(2, 8))],
    }
    made.dump["stats"] = [{"queue": "q", "waiting": 0, "leased": 0, "dead": 1, "exact": True}]
    made.dump["kinds"] = [{"queue": "q", "kind": "plain", "live": 0, "dead": 1}]
    return made


def test_figures_that_add_up(forger: Forger) -> None:
    assert checker.check(forger.lines, forger.dump)["broken"] == {}


@pytest.mark.parametrize("name", [*COUNTS, "waits", "runs"])
@pytest.mark.parametrize("span", ["minute", "hour"])
def test_one_too_many(forger: Forger, span: str, name: str) -> None:
    row = forger.dump["minutes"][span][0]
    row[name] = [1, *row[name][1:]] if name in ("waits", "runs") else row[name] + 1
    assert forger.broken() == {"minutes"}


def test_one_in_the_wrong_minute(forger: Forger) -> None:
    first, second, _ = forger.dump["minutes"]["minute"]
    first["started"], second["started"] = 2, 0
    assert forger.broken() == {"minutes"}


def test_a_minute_that_nobody_lived(forger: Forger) -> None:
    forger.dump["minutes"]["minute"].append(_minute(240, expired=1))
    assert forger.broken() == {"minutes"}


def test_complete_figures_that_say_they_are_not(forger: Forger) -> None:
    forger.dump["minutes"]["minute"][0]["exact"] = False
    assert forger.broken() == {"minutes"}


def test_fewer_than_the_ledger_knows(forger: Forger) -> None:
    """Acknowledged, and neither in the tables nor in the figures."""
    forger.publish(3, 120.0, queue="q", kind="plain")
    assert forger.broken() == {"lost", "minutes"}


@pytest.mark.parametrize("name", ["waiting", "leased", "dead"])
def test_stats_of_what_is_not_there(forger: Forger, name: str) -> None:
    forger.dump["stats"][0][name] += 1
    assert forger.broken() == {"stats"}


@pytest.mark.parametrize("name", ["live", "dead"])
def test_a_kept_count_of_what_is_not_there(forger: Forger, name: str) -> None:
    forger.dump["kinds"][0][name] += 1
    assert forger.broken() == {"stats"}


def test_a_queue_that_the_stats_forgot(forger: Forger) -> None:
    forger.dump["stats"] = []
    assert forger.broken() == {"stats"}
