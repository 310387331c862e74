"""The rules of fairness that MySQL and SQLite compute in Python, as pure functions."""

import random
from math import floor
from operator import itemgetter

import pytest

from laneway.engines.fairness import (
    OLDEST_OF,
    QUANTUM,
    RESTED,
    Pace,
    RateLimit,
    RunTime,
    Share,
    TimeShare,
    divide,
    next_skips,
    rate_limit,
    rounds_for,
    start_order,
    startable,
    whole_rounds,
)

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
PRIORITY, POSITION = itemgetter(0), itemgetter(1, 2)

Message = tuple[int, int, int]


def shares(*weights: float, credit: float = 0) -> list[Share]:
    return [Share(credit, QUANTUM * weight) for weight in weights]


def one_by_one(offers: list[tuple[Share, int]], limit: int, rounds: int) -> list[int]:
    """What divide must come to: every round by itself."""
    counts, left = [0] * len(offers), limit
    for _ in range(rounds):
        for number, (share, room) in enumerate(offers):
            count = share.visit(1, room - counts[number], left)
            counts[number] += count
            left -= count
        if not left:
            break
    return counts


def messages(*numbers: int) -> list[Message]:
    """So many of each priority; the lower the priority, the longer they wait."""
    return [
        (priority, 1000 * priority + n, 100 * priority + n)
        for priority, count in enumerate(numbers)
        for n in range(count)
    ]


def started(found: list[Message], total: int, skips: int) -> list[Message]:
    return start_order(found, total, skips, PRIORITY, POSITION)


class TestRate:
    limit = RateLimit(rate=10, burst=5)

    def test_a_fresh_channel_has_its_burst(self) -> None:
        assert self.limit.tokens(None, NOW) == 5
        assert self.limit.tokens(NOW - SECOND, NOW) == 5
        assert self.limit.open_at(None, NOW) is None

    def test_starts_use_the_burst_up_and_time_brings_it_back(self) -> None:
        tat = self.limit.after(5, None, NOW)
        assert self.limit.tokens(tat, NOW) == 0
        assert self.limit.open_at(tat, NOW) == NOW + SECOND // 10
        assert self.limit.tokens(tat, NOW + SECOND // 10) == 1
        assert self.limit.open_at(tat, NOW + SECOND // 10) is None
        assert self.limit.tokens(tat, NOW + SECOND) == 5

    def test_no_start_leaves_the_arrival_time_where_it_is(self) -> None:
        assert self.limit.after(0, NOW + 7, NOW) == NOW + 7
        assert self.limit.after(0, None, NOW) == NOW

    @pytest.mark.parametrize("rate", [0.1, 0.3, 1, 3, 7.3, 333.3, 10_000])
    def test_never_more_than_the_burst_and_the_rate(self, rate: float) -> None:
        limit, random_ = RateLimit(rate, 3), random.Random(1)
        tat, now, total = None, NOW, 0
        for _ in range(2000):
            count = min(limit.tokens(tat, now), random_.randint(0, 4))
            if count:
                tat = limit.after(count, tat, now)
                total += count
            assert total <= 3 + (now - NOW) / SECOND * rate + 1e-6
            now = limit.open_at(tat, now) or now + random_.randint(0, round(2 * SECOND / rate))

    def test_it_opens_no_later_than_it_must(self) -> None:
        for rate in (0.3, 1, 7.3, 99):
            limit = RateLimit(rate, 2)
            tat = limit.after(2, None, NOW)
            open_at = limit.open_at(tat, NOW)
            assert open_at is not None
            assert limit.tokens(tat, open_at) == 1
            assert limit.tokens(tat, open_at - 2) == 0

    def test_a_new_rate_counts_no_more_than_a_used_up_burst(self) -> None:
        assert self.limit.tokens(self.limit.latest(NOW), NOW) == 0
        assert self.limit.tokens(self.limit.latest(NOW), NOW + SECOND // 10) == 1

    def test_there_may_be_none(self) -> None:
        assert rate_limit(None, None) is None
        assert rate_limit(2, 3) == (2, 3)


class TestStartable:
    def test_the_narrowest_limit_counts(self) -> None:
        limit = RateLimit(1, 4)
        assert startable(9, 0, None, None, None, NOW) == 9
        assert startable(9, 2, 7, None, None, NOW) == 5
        assert startable(9, 2, 7, limit, None, NOW) == 4
        assert startable(3, 2, 7, limit, None, NOW) == 3

    def test_more_leases_than_a_new_limit_leave_none(self) -> None:
        assert startable(9, 5, 2, None, None, NOW) == 0


class TestRounds:
    def test_a_round_goes_by_weight(self) -> None:
        offers = [(share, 1000) for share in shares(1, 2, 0.5)]
        assert divide(offers, 35, 1) == [10, 20, 5]
        assert [share.cut for share, _ in offers] == [False] * 3
        assert [share.credit for share, _ in offers] == [0] * 3

    def test_what_the_batch_cuts_off_is_first_in_the_next(self) -> None:
        first, cut, last = shares(1, 1, 1)
        assert divide([(first, 50), (cut, 50), (last, 50)], 15, 1) == [10, 5, 0]
        assert (first.cut, cut.cut, last.cut) == (False, True, True)
        assert (first.credit, cut.credit, last.credit) == (0, 5, 0)
        assert divide([(cut, 45), (last, 50), (first, 40)], 15, 1) == [5, 10, 0]

    def test_fractions_add_up_over_the_rounds(self) -> None:
        (light,) = shares(0.025)
        assert [light.visit(1, 100, 100) for _ in range(8)] == [0, 0, 0, 1, 0, 0, 0, 1]

    def test_a_limit_that_is_reached_leaves_less_than_one_message(self) -> None:
        (share,) = shares(1.25)
        assert share.visit(1, 3, 100) == 3
        assert not share.cut
        assert share.credit == 0.5

    @pytest.mark.parametrize("seed", range(200))
    def test_many_rounds_at_once_are_the_same_as_one_by_one(self, seed: int) -> None:
        random_ = random.Random(seed)
        # Fractions of two, so that sums are exact.
        weights = [random_.choice([0.25, 0.5, 1, 1.5, 2, 3]) for _ in range(random_.randint(1, 9))]
        rooms = [random_.choice([0, 1, 7, 40, 1000]) for _ in weights]
        limit, rounds = random_.choice([1, 9, 30, 200, 1000]), random_.choice([1, 2, 8, 64])
        planned = list(zip(shares(*weights), rooms, strict=True))
        walked = list(zip(shares(*weights), rooms, strict=True))
        assert divide(planned, limit, rounds) == one_by_one(walked, limit, rounds)

    def test_whole_rounds_fit_and_one_more_does_not(self) -> None:
        offers = [(share, 1000) for share in shares(1, 2)]
        assert whole_rounds(offers, 29, 100) == 0
        assert whole_rounds(offers, 30, 100) == 1
        assert whole_rounds(offers, 100, 100) == 3
        assert whole_rounds(offers, 100, 2) == 2

    def test_few_channels_need_several_rounds(self) -> None:
        assert rounds_for([1000], 10) == 1
        assert rounds_for([1000], 100) == 16
        assert rounds_for([1000] * 10, 100) == 1
        assert rounds_for([3, 4], 100) == 1
        assert rounds_for([], 100) == 1

    def test_shares_over_many_batches_go_by_weight(self) -> None:
        weights = [1, 2, 5, 0.5]
        ring, totals = shares(*weights), [0] * len(weights)
        order = list(range(len(weights)))
        for _ in range(2000):
            counts = divide([(ring[n], 10_000) for n in order], 7, 1)
            for n, count in zip(order, counts, strict=True):
                totals[n] += count
            # Those that were cut short or not reached keep their turns, the others queue up.
            order.sort(key=lambda n: not ring[n].cut)
        for weight, total in zip(weights, totals, strict=True):
            assert total / sum(totals) == pytest.approx(weight / sum(weights), rel=0.02)


class TestPriorities:
    def test_the_highest_first_and_then_by_due_and_id(self) -> None:
        found = [(0, 1, 1), (5, 9, 7), (5, 9, 6), (2, 3, 3)]
        assert started(found, 3, 0) == [(5, 9, 6), (5, 9, 7), (2, 3, 3)]

    def test_one_start_in_ten_goes_to_the_longest_waiting(self) -> None:
        found = messages(50, 0, 50)
        assert [one[0] for one in started(found, 9, 0)] == [2] * 9
        assert [one[0] for one in started(found, 10, 0)] == [0] + [2] * 9
        assert [one[0] for one in started(found, 1, 9)] == [0]
        assert [one[0] for one in started(found, 21, 9)] == [0] * 3 + [2] * 18

    @pytest.mark.parametrize("batch", [1, 3, 7, 10, 15, 40])
    def test_no_priority_starves_whatever_the_batches_are(self, batch: int) -> None:
        found, skips, low = messages(400, 2000), 0, 0
        for _ in range(1000 // batch):
            chosen = set(started(found, batch, skips))
            low += sum(one[0] == 0 for one in chosen)
            skips = next_skips(skips, len(chosen))
            found = [one for one in found if one not in chosen]
        assert low == floor(1000 // batch * batch / OLDEST_OF)

    @pytest.mark.parametrize("skips", range(OLDEST_OF))
    def test_a_larger_total_only_adds(self, skips: int) -> None:
        random_ = random.Random(skips)
        found = [(random_.randint(0, 3), random_.randint(0, 50), id) for id in range(120)]
        before: set[Message] = set()
        for total in range(1, 121):
            chosen = set(started(found, total, skips))
            assert len(chosen) == total
            assert before < chosen
            before = chosen


PACE = Pace(reached=100.0, turn=1.0)


def known(booked: float, cost: float = 0.1, ago: float = 0) -> RunTime:
    return RunTime(booked, booked, cost, NOW - int(ago * SECOND))


def test_by_time_a_channel_starts_until_it_is_a_turn_ahead() -> None:
    share = TimeShare(PACE, known(100.0), 1, 0, NOW, resting=False)
    assert share.visit(1, 1000, 1000) == 10
    assert share.visit(1, 1000, 1000) == 10  # the next round
    assert TimeShare(PACE, known(101.0), 1, 0, NOW, resting=False).visit(1, 9, 9) == 0


def test_by_time_one_message_starts_however_long_it_runs() -> None:
    share = TimeShare(PACE, known(100.9, 3600.0), 1, 0, NOW, resting=False)
    assert share.visit(1, 5, 5) == 1
    assert share.after(1).booked == pytest.approx(3700.9)


def test_by_time_a_heavier_channel_starts_more() -> None:
    assert TimeShare(PACE, known(100.0), 3, 0, NOW, resting=False).visit(1, 99, 99) == 30


def test_by_time_what_ended_takes_the_place_of_what_was_booked() -> None:
    before = TimeShare(PACE, known(100.0, 2.0), 1, 0, NOW, resting=False)
    assert before.visit(1, 1, 1) == 1
    noted = before.after(1)
    assert noted.booked == pytest.approx(102.0)
    after = TimeShare(PACE, noted, 1, 0, NOW, (1, 7 * SECOND), resting=False)
    assert after.after(0)[:3] == pytest.approx((107.0, 107.0, 3.0))


def test_by_time_a_new_channel_begins_with_one_message() -> None:
    new = TimeShare(PACE, None, 1, 0, NOW)
    assert new.visit(1, 10, 10) == 1
    # It is running for four seconds, and the others have had two more.
    later = TimeShare(Pace(102.0, 1.0), new.after(1), 1, 1, NOW + 4 * SECOND, resting=False)
    assert later.visit(1, 10, 10) == 0
    others_had_more = Pace(104.0, 1.0)
    assert TimeShare(others_had_more, new.after(1), 1, 1, NOW + 4 * SECOND).visit(1, 10, 10) == 0
    caught_up = Pace(107.0, 1.0)
    share = TimeShare(caught_up, new.after(1), 1, 1, NOW + 4 * SECOND, resting=False)
    assert share.visit(1, 10, 10) == 1


def test_by_time_whoever_rested_joins_the_others() -> None:
    assert TimeShare(PACE, known(20.0), 1, 0, NOW).after(0).booked == 100.0
    owes = TimeShare(PACE, known(130.0, ago=10), 1, 0, NOW)
    assert owes.after(0).booked == pytest.approx(120.0)
    assert TimeShare(PACE, known(1e9), 1, 0, NOW).after(0).booked == 100.0 + RESTED


def test_by_time_whoever_did_not_rest_is_little_behind() -> None:
    share = TimeShare(PACE, known(20.0, 5.0), 1, 0, NOW, resting=False)
    assert share.after(0).booked == pytest.approx(90.0)


def test_by_time_rounds_fill_a_batch() -> None:
    times = [known(100.0), known(109.5, 10.0), known(100.3, 0.5)]
    offers = [(TimeShare(PACE, one, 1, 0, NOW, resting=False), 1000) for one in times]
    rounds = max(share.rounds_to(500) for share, _ in offers)
    counts = divide(offers, 500, rounds)
    assert sum(counts) == 500
    ends = [share.after(count).booked for (share, _), count in zip(offers, counts, strict=True)]
    assert max(ends) - min(ends) <= 10.0 + 2 * PACE.turn
    assert TimeShare(PACE, known(1e15), 1, 0, NOW, resting=False).rounds_to(1) < 2**41
