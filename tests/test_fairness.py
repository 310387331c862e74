"""A loud tenant takes no more than its share, and weights are kept: counted, not timed."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.fairness import JAIN, ROUNDS, SHARE, Size, shares, spread, wanted
from benchmarks.shares import jain, longest_wait
from laneway import Message, Queue
from tests.place import Place, fresh_schema

SIZE = Size(bulk=30_000, one_by_one=3_000)


_ONE_BY_ONE = pytest.param(True, marks=pytest.mark.repeats("the same in claims of one"))


@pytest.mark.parametrize("one_by_one", [False, _ONE_BY_ONE])
def test_a_loud_channel_does_not_stand_in_the_way(place: Place, one_by_one: bool) -> None:
    found = spread(place.url, place.schema, SIZE, one_by_one=one_by_one)
    assert found.starts == 10_000
    assert found.index >= JAIN
    assert found.rounds <= ROUNDS


@pytest.mark.repeats("shares by weight are a conformance case")
def test_shares_of_many_channels_go_by_weight(place: Place) -> None:
    # Where in a round the count ends is worth up to one visit a channel: half a percent here.
    _check_shares(place, 30_000, each=3)


def test_shares_of_few_channels_go_by_weight(place: Place) -> None:
    _check_shares(place, 15_000, each=1)


def _check_shares(place: Place, messages: int, each: int) -> None:
    for weight, share in shares(place.url, place.schema, messages, each).items():
        assert share == pytest.approx(wanted(weight), rel=SHARE), weight


def test_a_visit_that_the_batch_cut_short_goes_on_in_the_next(place: Place) -> None:
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
        for channel in ("a", "b", "c"):
            queue.publish_many([b""] * 50, channel=channel)
        queue.claim(30)
        visits = [Counter(message.channel for message in queue.claim(15)) for _ in range(2)]
    # Ten messages a visit: the second half of one comes before anyone's next visit.
    (first, _), (cut, _) = visits[0].most_common()
    (third,) = {"a", "b", "c"} - {first, cut}
    assert visits == [{first: 10, cut: 5}, {cut: 5, third: 10}]


def test_jain_tells_equal_from_unequal() -> None:
    assert jain([5, 5, 5, 5]) == 1
    assert jain([1, 0, 0, 0]) == 0.25


def test_the_longest_wait_counts_the_visits_of_others() -> None:
    assert longest_wait([["a", "a", "b"], ["c"]], ["b", "c"]) == 1
    assert longest_wait([["a"], ["a"], ["b"]], ["b"]) == 2
    assert longest_wait([["a"], ["a"], ["a"]], ["b"]) == 3


_REPEATS = pytest.mark.repeats("another weight or database of the same scenario")


@pytest.mark.parametrize(
    ("engine", "weight"),
    [
        ("postgresql", 1),
        ("sqlite", 2),
        pytest.param("postgresql", 2, marks=_REPEATS),
        pytest.param("sqlite", 1, marks=_REPEATS),
        pytest.param("mariadb", 1, marks=_REPEATS),
        pytest.param("mariadb", 2, marks=_REPEATS),
    ],
)
def test_by_time_a_tenant_of_long_messages_gets_the_worker_time_of_one_of_short_ones(
    engine: str, weight: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Ten workers for a minute: one tenant whose messages take 10 s, nine of 0.1 s."""
    lengths = {"slow": 100} | {f"quick {number}": 1 for number in range(9)}  # tenths of a second
    clock = [datetime.now(UTC)]
    used: Counter[str] = Counter()
    running: list[tuple[int, Message]] = []
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    if engine == "postgresql":
        url = request.getfixturevalue("database")
    elif engine == "mariadb":
        url = request.getfixturevalue("mariadb").create_database(f"fair by time {weight}")
    with Queue(url, schema=fresh_schema(), clock=lambda: clock[0], upkeep_every=None) as queue:
        queue.install()
        queue.set_fairness("time")
        queue.channel("slow").limit(weight=weight)
        for name in lengths:
            queue.publish_many([b""] * 700, channel=name)
        for tick in range(600):
            queue.complete([message for end, message in running if end <= tick])
            running = [one for one in running if one[0] > tick]
            while len(running) < 10:
                found = queue.claim(10 - len(running), lease=120)
                running += [(tick + lengths[message.channel], message) for message in found]
            used.update(message.channel for _, message in running)
            clock[0] += timedelta(seconds=0.1)
    assert sum(used.values()) == 6000
    fair = 6000 / (9 + weight)
    for name, tenths in used.items():
        assert tenths == pytest.approx(fair * (weight if name == "slow" else 1), rel=0.05), used
