"""Everything that ends parents of the same children, in pairs; LANEWAY_ORDERINGS=20 tries more."""

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement

import psycopg
import pytest

from laneway import Queue
from laneway.model import HeldLease, Settled
from tests.interleavings.flow_world import FLOW_SCRIPTS, ONE, TWO, FlowWorld, Node
from tests.interleavings.scripts import ENDS, Run, Script, orderings
from tests.interleavings.world import Connection

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


def test_a_child_that_is_skipped_late_is_decided_without_a_lock_out_of_order(
    flows: FlowWorld,
) -> None:
    """Who completes one waits for its child six, which the end of two decides meanwhile: six is
    skipped, and nobody knew that its child eight has to be locked. Whoever has eight waits for ten,
    which is locked by then: to wait for eight would close a circle."""
    six, seven, eight = Node((1, 2)), Node((1, 5)), Node((6, 3))
    nine, ten = Node((3, 4)), Node((1, 3), "ended")
    flows.clear()
    flows.ids = flows.publish_flow(flows.own, (*[Node()] * 5, six, seven, eight, nine, ten), "f")
    flows.fences = dict(flows.claim(flows.own, limit=5))
    found: list[Settled] = []

    def complete(number: int) -> None:
        with Queue(flows.url, upkeep_every=None) as queue:
            lease = HeldLease(flows.id(number), flows.fences[flows.id(number)])
            found.extend(queue.database.run(queue.database.engine.leases.complete([lease])))

    before = _deadlocks(flows)
    with (
        psycopg.connect(flows.url) as missing,
        psycopg.connect(flows.url) as nine_held,
        psycopg.connect(flows.url) as seven_held,
        ThreadPoolExecutor(2) as threads,
    ):
        missing.execute(
            "select laneway.complete_v1(%s, %s, null, null, 'cancelled')",
            [[flows.id(2)], [flows.fences[flows.id(2)]]],
        )
        flows.complete(nine_held, 4)
        flows.complete(seven_held, 5)
        calls = [threads.submit(complete, number) for number in (1, 3)]
        _who_waits_for(flows, missing, 2)  # to have six, and eight
        missing.commit()
        _who_waits_for(flows, nine_held, 1)
        _who_waits_for(flows, seven_held, 1)
        seven_held.commit()
        calls[0].result(60)  # waits for nobody
        flows.check_flow()
        left = flows.own.execute("select parent from laneway.flow_undecided").fetchall()
        assert left == [(flows.id(6),)]
        nine_held.commit()
        calls[1].result(60)
    assert [answer.status for answer in found] == ["completed", "completed"]
    assert _deadlocks(flows) == before
    flows.check_flow()
    flows.drain_flow()


def test_upkeep_locks_what_died_and_what_lapsed_in_one_order(flows: FlowWorld) -> None:
    """One has died, three has lapsed, and five comes after both of their children's other parent,
    two: whoever completes two has four, and waits for five."""
    four, five = Node((3, 2), "ended"), Node((1, 2), "ended")
    flows.clear()
    idle = Node(delay="1 hour")
    flows.ids = flows.publish_flow(flows.own, (Node(), Node(), idle, four, five), "f")
    flows.fences = dict(flows.claim(flows.own, limit=1, lease="-1 second"))
    flows.fences |= dict(flows.claim(flows.own, limit=1))
    flows.own.execute("update laneway.message set max_attempts = 1 where id = %s", [flows.id(1)])
    flows.own.execute(
        "update laneway.message set expires_at = clock_timestamp() - interval '1 s' where id = %s",
        [flows.id(3)],
    )
    before = _deadlocks(flows)
    with flows.sessions(3) as (holder, upkeep, complete):
        holder.begin()
        lock = "select from laneway.flow_node where id = %s for update"
        holder.do(lambda connection: connection.execute(lock, [flows.id(3)]))
        upkeep.do(lambda connection: connection.execute("select laneway.upkeep_v1()"))
        assert upkeep.is_waiting
        complete.do(lambda connection: flows.complete(connection, 2))
        holder.commit()
        flows.stepper.release([upkeep, complete])
        assert not upkeep.is_waiting
        assert not complete.is_waiting
    assert _deadlocks(flows) == before
    flows.check_flow()
    flows.drain_flow()


def _who_waits_for(flows: FlowWorld, who: Connection | int, count: int) -> list[int]:
    pid = who if isinstance(who, int) else who.info.backend_pid
    query = "select pid from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
    end = time.monotonic() + 20
    while len(found := flows.own.execute(query, [pid]).fetchall()) != count:
        assert time.monotonic() < end, "nobody waits"
        time.sleep(0.01)
    return [row[0] for row in found]


def _deadlocks(flows: FlowWorld) -> int:
    """Sessions report when they have nothing to do."""
    time.sleep(0.1)
    query = "select deadlocks from pg_stat_database where datname = current_database()"
    flows.own.execute("select pg_stat_clear_snapshot()")
    return int((flows.own.execute(query).fetchone() or (0,))[0])
