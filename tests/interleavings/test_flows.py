"""Everything that ends parents of the same children, in pairs; LANEWAY_ORDERINGS=20 tries more."""

import os
import random
from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest

from tests.interleavings.flow_world import FLOW_SCRIPTS, ONE, TWO, FlowWorld
from tests.interleavings.scripts import ENDS, Run, Script, orderings

_SAMPLE = int(os.environ.get("LANEWAY_ORDERINGS", "1"))  # of each pair


@pytest.fixture(scope="module")
def flows(home: str) -> Iterator[FlowWorld]:
    with FlowWorld(home) as running:
        yield running
        running.clear()


@pytest.mark.timeout(60 * _SAMPLE)
@pytest.mark.parametrize(
    "pair",
    list(combinations_with_replacement(FLOW_SCRIPTS, 2)),
    ids=lambda pair: " + ".join(script.name for script in pair),
)
def test_pair(flows: FlowWorld, pair: tuple[Script, Script]) -> None:
    chosen = random.Random(" ".join(script.name for script in pair))
    merges = list(orderings([3 if script.open else 1 for script in pair]))
    for number in range(_SAMPLE):
        # Two in three commit: there the verbs meet.
        ends = [ENDS[0] if chosen.random() < 0.67 else chosen.choice(ENDS) for _ in pair]
        runs = tuple(Run(script, end) for script, end in zip(pair, ends, strict=True))
        # The middle ones overlap.
        merge = merges[len(merges) // 3] if number == 0 else chosen.choice(merges)
        try:
            _play(flows, runs, merge)
        except BaseException as error:
            error.add_note(f"{[str(run) for run in runs]} in the order {merge}")
            raise


def _play(flows: FlowWorld, runs: tuple[Run, ...], merge: list[int]) -> None:
    flows.reset_flow()
    with flows.sessions(len(runs)) as sessions:
        steps = [iter(run.steps(flows)) for run in runs]
        for number in merge:
            next(steps[number])(sessions[number])
            flows.stepper.release(sessions)
        assert not any(session.is_waiting for session in sessions), "somebody still waits"
    flows.check_flow()
    flows.drain_flow()


def test_who_ends_parents_of_the_same_child_waits_and_then_releases_it(flows: FlowWorld) -> None:
    flows.reset_flow()
    with flows.sessions(2) as (first, second):
        first.begin()
        first.do(lambda connection: flows.complete(connection, ONE))
        second.do(lambda connection: flows.complete(connection, TWO))
        assert second.is_waiting
        first.commit()
        flows.stepper.release([second])
        assert not second.is_waiting
    (state,) = flows.own.execute(
        "select state from laneway.flow_node where id = %s", [flows.id(6)]
    ).fetchone() or ("",)
    assert state == "live"
    flows.drain_flow()
