"""Every pair of verbs, and some threes, on one message and one channel, in every ordering.

The default run takes a sample of orderings by a fixed seed, LANEWAY_ORDERINGS=20 a larger one.
LANEWAY_ORDERINGS=all takes every ordering of every pair, with every way to end, in the isolation
that everybody uses; LANEWAY_EXHAUSTIVE=1 also every isolation and limit, and takes a day.
"""

import os
import random
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, cycle, islice, product

import pytest

from tests.interleavings.scripts import BY_NAME, ISOLATIONS, SCRIPTS, Run, orderings, runs
from tests.interleavings.stepper import Session
from tests.interleavings.world import World

Case = tuple[tuple[Run, ...], list[int], int | None]

_EXHAUSTIVE = os.environ.get("LANEWAY_EXHAUSTIVE") == "1"
_WANTED = os.environ.get("LANEWAY_ORDERINGS", "1")  # orderings of each pair
_ALL = _WANTED == "all"
_SAMPLE = 100 if _ALL else int(_WANTED)  # of threes there are too many for all of them
_SAMPLE_OF_THREE = 4 * _SAMPLE
_THREES = (
    ("publish", "complete", "claim"),
    ("publish", "claim", "claim"),
    ("publish high", "cancel", "claim"),
    ("publish keyed", "publish keyed", "claim"),
    ("publish known key", "complete keyed", "claim"),
    ("complete", "upkeep", "claim"),
    ("complete", "limit", "claim"),
    ("extend", "limit", "upkeep"),
    ("extend", "limit", "limit"),
    ("give_back", "limit", "claim"),
    ("defer", "cancel", "claim"),
    ("redrive", "discard", "claim"),
    ("publish", "remove", "upkeep"),
    ("cancel", "remove", "upkeep"),
    ("pause", "complete", "claim"),
    ("publish", "claim by kind", "claim"),
    ("publish high", "claim by kind", "claim other kind"),
    ("publish", "cancel", "claim by kind"),
    ("complete", "pause", "claim by kind"),
    ("give_back", "limit", "claim by kind"),
)
_PAIRS = [(one.name, two.name) for one, two in combinations_with_replacement(SCRIPTS, 2)]


_LIMITS = (None, 3, 4)


def _cases(names: Sequence[str], sample: int) -> Iterator[Case]:
    every = [list(runs(BY_NAME[name])) for name in names]
    lengths = [3 if BY_NAME[name].open else 1 for name in names]
    merges = list(orderings(lengths))
    if _EXHAUSTIVE:
        yield from product(product(*every), merges, _LIMITS)
    elif _ALL and len(names) == 2:
        usual = [[run for run in ways if run.isolation == ISOLATIONS[0]] for ways in every]
        limits = cycle(_LIMITS)
        for combination, merge in product(product(*usual), merges):
            yield combination, merge, next(limits)
    else:
        yield from _drawn(names, every, merges, sample)


def _drawn(
    names: Sequence[str], every: list[list[Run]], merges: list[list[int]], sample: int
) -> Iterator[Case]:
    chosen = random.Random(" ".join(names))
    meeting = [merge for merge in merges if _meets(merge)] or merges
    for _ in range(sample):
        combination = tuple(
            # Two in three commit in the usual isolation: there the verbs meet.
            Run(BY_NAME[name]) if chosen.random() < 0.67 else chosen.choice(ways)
            for name, ways in zip(names, every, strict=True)
        )
        yield combination, chosen.choice(meeting), chosen.choice(_LIMITS)


def _meets(merge: Sequence[int]) -> bool:
    """Somebody acts while another's verb is done and not yet ended."""
    verb = [turn for turn, number in enumerate(merge) if merge[:turn].count(number) == 1]
    end = [turn for turn, number in enumerate(merge) if merge[:turn].count(number) == 2]
    alone = [turn for turn, number in enumerate(merge) if merge.count(number) == 1]
    return any(
        merge[start] != merge[turn]
        for start in verb
        for turn in (*verb, *alone)
        if start < turn < next(stop for stop in end if merge[stop] == merge[start])
    )


@pytest.mark.timeout(3600 if _EXHAUSTIVE else 60 * _SAMPLE)
@pytest.mark.parametrize("names", _PAIRS, ids=" + ".join)
def test_pair(world: World, names: tuple[str, ...]) -> None:
    for case in _cases(names, _SAMPLE):
        _play(world, case)


@pytest.mark.timeout(36000 if _EXHAUSTIVE else 60 * _SAMPLE)
@pytest.mark.parametrize("names", _THREES, ids=" + ".join)
def test_three(world: World, names: tuple[str, ...]) -> None:
    for case in islice(_cases(names, _SAMPLE_OF_THREE), 50_000):
        _play(world, case)


def _play(world: World, case: Case) -> None:
    combination, merge, limit = case
    world.reset(limit)
    with world.sessions(len(combination)) as sessions:
        try:
            _walk(world, combination, sessions, merge)
            world.drain()
        except BaseException as error:
            words = [str(run) for run in combination]
            error.add_note(f"{words} in the order {merge}, limit {limit}")
            raise


def _walk(
    world: World, combination: Sequence[Run], sessions: Sequence[Session], merge: Sequence[int]
) -> None:
    steps = [iter(run.steps(world)) for run in combination]
    names = {s.pid: run.script.name for run, s in zip(combination, sessions, strict=True)}
    for number in merge:
        session, script = sessions[number], combination[number].script
        next(steps[number])(session)
        for pid in session.blocked_by if session.is_waiting else []:
            blocker = names.get(pid, "somebody else")
            assert blocker in script.waits_for, f"{script.name} waits for {blocker}"
        world.stepper.release(sessions)
        world.check()
    assert not any(session.is_waiting for session in sessions), "somebody still waits"
