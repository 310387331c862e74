"""Defects that were found by reading and by stepping, each as the shortest way to meet it again."""

import psycopg
import pytest

from tests.interleavings.invariants import over_limit
from tests.interleavings.world import World

_LEFT = """
select count(*) from laneway.message m
where not exists (select from laneway.lease l where l.message_id = m.id)
"""
_TABLES = (
    "select * from laneway.message order by id",
    "select * from laneway.lease order by message_id",
    "select * from laneway.dead order by id",
    "select * from laneway.dedupe order by key",
    "select * from laneway.wake order by at, message_id",
    "select * from laneway.token order by channel_id",
)
_OF_THE_SAME_PART = """
select c.name from (select 'c' || n as name from generate_series(1, 1000) n) c
where laneway.channel_part_v1(laneway.channel_id_v1('q', c.name))
    = laneway.channel_part_v1(laneway.channel_id_v1('q', 'a'))
limit 1
"""
_CONTENDED_CLAIM = (
    "select id from laneway.claim_v1(array['q'], 1, '30 s', 'me', p_contended => true)"
)

_FLOORS_OF_A_CLAIM = """
select c.id, c.answer, c.turn_floor <= (select min(t.turn) from laneway.token t)
from laneway.claim_v1(array['q'], 1, '30 s', 'me', p_turn_floor => now() - interval '1 day',
    p_wake_floor => now() - interval '1 day', p_contended => true) c
"""


def _left(world: World) -> int:
    (number,) = world.own.execute(_LEFT).fetchone() or (-1,)
    return int(number)


def test_nothing_hides_behind_a_floor(world: World) -> None:
    """The only running transaction is in no snapshot's list."""
    world.clear()
    world.claim(world.own)
    with world.sessions(1) as (producer,):
        producer.begin()
        producer.do(world.publish)
        assert world.claim(world.own) == []
        producer.commit()
    assert len(world.claim(world.own)) == 1


def test_a_second_claim_in_a_transaction_gives_no_floors(world: World) -> None:
    world.clear()
    with world.own.transaction():
        world.claim(world.own)
        assert world.floors.turn is not None
        world.claim(world.own)
        assert world.floors.turn is None


def test_a_visit_cut_short_keeps_its_place(world: World) -> None:
    """Fewer found than counted, because one is past its time, and the batch has no room for all."""
    world.clear()
    for _ in range(3):
        world.publish(world.own)
    world.publish(world.own, "b", expires_in="1 microsecond")
    world.publish(world.own, "b")
    world.publish(world.own, "b")
    assert len(world.claim(world.own, 4)) == 4
    world.check()
    assert len(world.claim(world.own, 4)) == 1


def test_a_message_taken_ahead_of_its_wake_hides_no_other(world: World) -> None:
    """A high priority is published between the look of a claim and its visit."""
    world.clear()
    for priority in (0, 0, 1):
        world.publish(world.own, priority=priority)
    assert len(world.claim(world.own, 1)) == 1
    with world.sessions(2) as (operator, claimer):
        # The claim looks, then waits: the row of a new channel is being made by somebody else.
        operator.begin()
        operator.do(lambda connection: world.set_policy(connection, channel="new"))
        world.publish(world.own, "new")
        claimer.do(lambda connection: world.claim(connection, 3))
        assert claimer.is_waiting
        world.publish(world.own, priority=1)
        operator.commit()
        world.stepper.release([claimer])
    world.check()
    while world.claim(world.own):
        pass
    assert _left(world) == 0


def test_a_limit_set_twice_charges_a_lease_once(world: World) -> None:
    world.reset()
    with world.sessions(1) as (holder,):
        holder.begin()
        holder.do(lambda connection: world.settle(connection, "extend", world.held))
        world.set_policy(world.own, 1)
        holder.commit()
        world.set_policy(world.own, 2)
    world.check()
    world.own.execute("select laneway.upkeep_v1()")
    world.check()
    world.drain()


def test_a_cancelled_message_of_a_removed_channel_leaves_no_count(world: World) -> None:
    world.clear()
    id = world.publish(world.own)
    world.own.execute("select laneway.cancel_v1(%s)", [[id]])
    world.own.execute("select laneway.remove_v1('q', array['a'])")
    world.own.execute("select laneway.upkeep_v1()")
    world.check()


def test_a_policy_is_not_lost_to_the_channel_being_deleted(world: World) -> None:
    world.clear()
    world.own.execute("select laneway.remove_v1('q', array['a'])")
    with world.sessions(3) as (reader, keeper, operator):
        # Upkeep owns the channel and waits before it deletes.
        reader.begin()
        reader.do(lambda connection: connection.execute("lock table laneway.token in share mode"))
        keeper.do(lambda connection: connection.execute("select laneway.upkeep_v1()"))
        assert keeper.is_waiting
        operator.do(lambda connection: world.set_policy(connection, 3))
        reader.commit()
        world.stepper.release([keeper, operator])
    limits = world.own.execute("select concurrency from laneway.channel").fetchall()
    assert limits == [(3,)]


@pytest.mark.parametrize(
    "statement",
    [
        "select laneway.cancel_v1('{1}')",
        "select laneway.upkeep_v1()",
        "select laneway.pause_v1('q', array['a'], true)",
        "select laneway.remove_v1('q', array['a'])",
        "select laneway.claim_v1(array['q'], 1, '1 s', 'w')",
    ],
)
def test_who_owns_channels_reads_what_the_last_owner_wrote(world: World, statement: str) -> None:
    with (
        pytest.raises(psycopg.errors.InvalidTransactionState, match="READ COMMITTED"),
        world.own.transaction(),
    ):
        world.own.execute("set transaction isolation level repeatable read")
        world.own.execute(statement.encode())


def test_a_live_key_answers_while_its_message_is_being_completed(world: World) -> None:
    world.reset()
    with world.sessions(2) as (holder, producer):
        holder.begin()
        holder.do(lambda connection: world.settle(connection, "complete", world.keyed))
        producer.do(lambda connection: world.publish(connection, key="k"))
        assert not producer.is_waiting
        holder.rollback()
    world.drain()


def test_a_refused_key_is_free_also_for_its_namesake(world: World) -> None:
    world.clear()
    world.set_policy(world.own, backlog=0)
    rows = world.own.execute(
        """select status from laneway.publish_v1(
            array['x', 'x']::bytea[], array['q'], array['a'], p_key => array['k', 'k'])"""
    ).fetchall()
    assert rows == [("full",), ("full",)]
    world.check()


def test_claims_step_around_a_channel_that_another_holds(world: World) -> None:
    world.clear()
    for channel in "ab":
        world.publish(world.own, channel)
    assert len(world.claim(world.own, 2)) == 2
    for channel in "ab":
        world.publish(world.own, channel)
    with world.sessions(2) as (slow, quick):
        slow.begin()
        slow.do(
            lambda connection: connection.execute(
                "select from laneway.channel where name = 'a' for no key update"
            )
        )
        quick.do(lambda connection: world.claim(connection, 10))
        assert not quick.is_waiting
        slow.rollback()
    world.check()
    world.drain()


def test_nobody_stands_in_line_for_a_paused_channel(world: World) -> None:
    """It is the next in turn, it can start nothing, and somebody holds it: the others are free.
    The other one is of the same part, or a claim that looks elsewhere would find it."""
    world.clear()
    (other,) = world.own.execute(_OF_THE_SAME_PART).fetchone() or ("",)
    for channel in ("a", other):
        for _ in range(15):
            world.publish(world.own, channel)
    assert len(world.claim(world.own, 20)) == 20
    world.own.execute("select laneway.pause_v1('q', array['a'], true)")
    with world.sessions(2) as (slow, quick):
        slow.begin()
        slow.do(
            lambda connection: connection.execute(
                "select from laneway.channel where name = 'a' for no key update"
            )
        )
        got: list[tuple[int, int]] = []
        quick.do(lambda connection: got.extend(world.claim(connection, 1)))
        assert not quick.is_waiting
        assert len(got) == 1
        slow.rollback()
    world.check()
    world.drain()


@pytest.mark.parametrize(("rate", "burst"), [(3.0, 1), (7.0, 5), (1 / 3, 2), (300_000.0, 10)])
def test_the_rate_is_kept_to_the_microsecond(world: World, rate: float, burst: int) -> None:
    """In no window are there more starts than burst + window x rate."""
    world.clear()
    world.set_policy(world.own, rate=rate, burst=burst)
    world.own.execute(
        "select laneway.publish_v1(array_fill('x'::bytea, array[60]), array['q'], array['a'])"
    )
    (now,) = world.own.execute("select clock_timestamp() + interval '1 s'").fetchone() or (None,)
    for _ in range(50):
        # Look at the very first moment at which something may start.
        world.own.execute("select laneway.claim_v1(array['q'], 2, '1 h', 'w', p_now => %s)", [now])
        (now,) = world.own.execute("select max(turn) from laneway.token").fetchone() or (None,)
        if now is None:
            break
    starts = world.own.execute(
        "select extract(epoch from claimed_at) from laneway.lease order by claimed_at"
    ).fetchall()
    times = [row[0] for row in starts]
    assert len(times) > 40
    for first in range(len(times)):
        for last in range(first, len(times)):
            window = float(times[last] - times[first])
            assert last - first + 1 <= burst + window * rate + 1e-6


def test_a_limit_holds_for_a_claim_that_looked_before_it_was_set(world: World) -> None:
    world.clear()
    for _ in range(4):
        world.publish(world.own)
    assert len(world.claim(world.own, 2)) == 2
    with world.sessions(2) as (operator, claimer):
        operator.begin()
        operator.do(lambda connection: world.set_policy(connection, channel="new"))
        world.publish(world.own, "new")
        claimer.do(lambda connection: world.claim(connection, 10))
        assert claimer.is_waiting
        world.set_policy(world.own, 2)
        operator.commit()
        world.stepper.release([claimer])
    assert over_limit(world.own) == []
    world.drain()


def test_a_claim_of_nothing_moves_no_floor(world: World) -> None:
    world.clear()
    world.publish(world.own)
    world.publish(world.own)
    assert len(world.claim(world.own, 1)) == 1
    world.claim(world.own, 0)
    assert len(world.claim(world.own, 1)) == 1


@pytest.mark.parametrize("verb", ["complete", "defer", "fail", "extend", "give_back"])
@pytest.mark.parametrize("given", ["another's", "none", "next"])
def test_who_does_not_hold_the_lease_changes_nothing(world: World, verb: str, given: str) -> None:
    world.reset(limit=3)
    before = _state(world)
    fence = {"another's": world.dead_fence, "none": 0, "next": world.fences[world.held] + 1}[given]
    world.settle(world.own, verb, world.held, fence)
    assert _state(world) == before


def test_a_publish_that_waited_for_its_key_is_behind_no_floor(world: World) -> None:
    """The claim looks while the second publisher has begun and waits for the first."""
    world.clear()
    world.claim(world.own)
    with world.sessions(2) as (first, second):
        first.begin()
        first.do(lambda connection: world.publish(connection, key="k"))
        second.begin()
        second.do(lambda connection: world.publish(connection, key="k"))
        assert second.is_waiting
        assert world.claim(world.own) == []
        first.rollback()
        world.stepper.release([second])
        assert world.claim(world.own) == []
        second.commit()
    assert len(world.claim(world.own)) == 1


def test_a_paused_channel_is_parked_and_comes_back(world: World) -> None:
    world.clear()
    world.publish(world.own)
    world.own.execute("select laneway.pause_v1('q', array['a'], true)")
    assert world.claim(world.own) == []
    world.check()
    world.own.execute("select laneway.pause_v1('q', array['a'], false)")
    world.check()
    assert len(world.claim(world.own)) == 1


@pytest.mark.parametrize("limit", [None, 10])
def test_a_cancelled_message_that_is_off_the_count_too_early_hides_no_other(
    world: World, limit: int | None
) -> None:
    """Its end is read before its own wake, because many wakes of busy channels lie between."""
    world.clear()
    world.set_policy(world.own, limit)
    first = [world.publish(world.own) for _ in range(5)]
    got = [id for id, _ in world.claim(world.own, 1)]
    others = [f"b{number}" for number in range(15)]
    for other in others:
        world.set_policy(world.own, channel=other)
        world.publish(world.own, other)
    world.own.execute("select laneway.cancel_v1(array[%s::bigint])", [world.publish(world.own)])
    with world.sessions(1) as (owner,):
        owner.begin()
        owner.do(lambda c: c.execute("select from laneway.channel where name <> 'a' for update"))
        for _ in range(3):
            got += [id for id, _ in world.claim(world.own, 1)]
        owner.rollback()
    while more := world.claim(world.own, 1):
        got += [id for id, _ in more]
    assert [id for id in got if id in first] == first
    assert len(got) == len(first) + len(others)
    world.check()


def _state(world: World) -> list[list[tuple[object, ...]]]:
    return [world.own.execute(query).fetchall() for query in _TABLES]


@pytest.mark.parametrize("limited", [False, True])
def test_a_claim_in_a_crowd_keeps_the_order_of_a_channel(world: World, limited: bool) -> None:
    """Claims that meet others look at a part of the channels, and there at every wake of each."""
    world.clear()
    if limited:
        world.set_policy(world.own, limit=1)
    elder = world.publish(world.own)
    for _ in range(20):
        world.publish(world.own)
    for _ in range(10):
        with world.own.transaction(force_rollback=True):
            claimed = world.own.execute(_CONTENDED_CLAIM).fetchall()
            assert claimed[0][0] == elder


@pytest.mark.parametrize("limited", [False, True])
def test_a_claim_that_waited_goes_back_for_an_elder(world: World, limited: bool) -> None:
    """The elder's transaction ends while the claim stands in line, and a younger one comes."""
    world.clear()
    world.set_policy(world.own, 10 if limited else None)
    assert world.claim(world.own) == []
    got: list[int] = []
    with world.sessions(3) as (producer, owner, claimer):
        producer.begin()
        elder: list[int] = []
        producer.do(lambda connection: elder.append(world.publish(connection)))
        assert world.claim(world.own) == []
        middle = world.publish(world.own)
        owner.begin()
        owner.do(lambda connection: connection.execute("select from laneway.channel for update"))
        claimer.do(lambda connection: got.extend(id for id, _ in world.claim(connection, 3)))
        assert claimer.is_waiting
        producer.commit()
        younger = world.publish(world.own)
        owner.rollback()
        world.stepper.release([claimer])
    assert got == [*elder, middle, younger]


def test_a_cancellation_that_waited_is_dated_when_it_happened(world: World) -> None:
    """Its channel is held by another, and meanwhile the message's holder gives it back."""
    world.clear()
    id = world.publish(world.own)
    ((_, fence),) = world.claim(world.own, 1)
    with world.sessions(2) as (owner, operator):
        owner.begin()
        owner.do(lambda connection: connection.execute("select from laneway.channel for update"))
        operator.do(lambda connection: connection.execute("select laneway.cancel_v1(%s)", [[id]]))
        assert operator.is_waiting
        world.settle(world.own, "defer", id, fence)
        owner.rollback()
        world.stepper.release([operator])
    ends = world.own.execute("select outcome from laneway.history order by ended_at").fetchall()
    assert [outcome for (outcome,) in ends] == ["deferred", "cancelled"]


@pytest.mark.parametrize("crowd", [False, True])
def test_a_claim_that_never_commits_keeps_only_its_own_channels(world: World, crowd: bool) -> None:
    """What it looked at and did not take is for all, and nobody stands in line for it."""
    world.clear()
    channels = [f"c{number}" for number in range(100)]
    for channel in channels:
        world.set_policy(world.own, channel=channel)
    wanted = {world.publish(world.own, channel) for channel in channels}
    claim = _CONTENDED_CLAIM if crowd else _CONTENDED_CLAIM.replace("true", "false")
    with world.sessions(1) as (slow,):
        slow.begin()
        held: list[int] = []
        slow.do(lambda c: held.extend(id for (id,) in c.execute(claim.encode()) if id))
        got: list[int] = []
        # One more would stand in line for what is held.
        while len(got) < len(wanted - set(held)):
            got += [id for (id,) in world.own.execute(claim.encode()).fetchall() if id]
        assert held and set(got) == wanted - set(held)
        slow.rollback()


def test_a_claim_beside_others_waits_for_the_only_channel(world: World) -> None:
    """One channel has all that is due. The first claim makes its row, the second gets the rest; a
    third, which waits in vain, says so and keeps its floors: nothing is hidden from the next."""
    world.clear()
    wanted = [world.publish(world.own) for _ in range(3)]
    got: list[int] = []

    def claim(connection: psycopg.Connection) -> None:
        got.extend(id for (id,) in connection.execute(_CONTENDED_CLAIM.encode()) if id)

    with world.sessions(2) as (owner, claimer):
        owner.begin()
        owner.do(claim)
        assert got == wanted[:1]
        claimer.do(claim)
        assert claimer.is_waiting
        owner.commit()
        world.stepper.release([claimer])
        assert got == wanted[:2]
        owner.begin()
        owner.do(lambda connection: connection.execute("select from laneway.channel for update"))
        *rows, last = world.own.execute(_FLOORS_OF_A_CLAIM.encode()).fetchall()
        assert (rows, last) == ([], (None, "busy", True))
        owner.rollback()
    claim(world.own)
    assert got == wanted
