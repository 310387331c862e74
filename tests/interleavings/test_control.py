"""Pauses of queues and run now, against claims and cancels that are under way."""

from functools import partial

from tests.interleavings.world import Connection, World

_PAUSE = "select * from laneway.pause_queue_v1('q', null, %s::interval, 'ann', '')"
_ANSWER = "select answer, look_again from laneway.claim_v1(array['q'], 1, '1 hour', 'w')"


def _pause(connection: Connection, length: str | None = None) -> None:
    connection.execute(_PAUSE, [length])


def _resume(connection: Connection) -> None:
    connection.execute("select laneway.resume_queue_v1('q', null)")


def _answer(world: World) -> str:
    *_, last = world.own.execute(_ANSWER).fetchall()
    return str(last[0])


def test_a_pause_waits_for_the_claims_that_are_open(world: World) -> None:
    """When it is committed, nothing of the queue starts any more."""
    world.reset()
    with world.sessions(2) as (claimer, pauser):
        claimer.begin()
        claimer.do(lambda connection: world.claim(connection, 1))
        pauser.do(_pause)
        assert pauser.is_waiting
        # Others neither wait for it nor get past it.
        assert _answer(world) == "busy"
        before = world.own.execute("select count(*) from laneway.lease").fetchone()
        claimer.commit()
        world.stepper.release([pauser])
        assert not pauser.is_waiting
        after = world.own.execute("select count(*) from laneway.lease").fetchone()
        assert before is not None and after is not None and after[0] == before[0] + 1
        assert _answer(world) == "blocked"
        assert world.own.execute("select count(*) from laneway.lease").fetchone() == after
    world.check()
    _resume(world.own)
    world.drain()


def test_a_claim_puts_a_paused_kind_back_itself(world: World) -> None:
    """In its own transaction: whoever dies after it has spent no attempt."""
    world.reset()
    leases = "select message_id, fence from laneway.lease order by 1"
    before = world.own.execute(leases).fetchall()
    world.own.execute("select * from laneway.pause_queue_v1('q', '', null, 'ann', '')")
    *found, last = world.own.execute(
        "select id, answer, claimed_at, headers from laneway.claim_v1(array['q'], 9, '1 h', 'w')"
    ).fetchall()
    assert (found, last) == ([], (None, "busy", None, None))
    assert world.own.execute(leases).fetchall() == before
    waiting = "select attempt, due > now() from laneway.message where id = any(%s)"
    assert world.own.execute(waiting, [world.idle]).fetchall() == [(0, True)] * len(world.idle)
    world.own.execute("select laneway.resume_queue_v1('q', '')")
    world.check()


def test_a_claim_that_rolls_back_under_a_pause_loses_nothing(world: World) -> None:
    world.reset()
    with world.sessions(2) as (claimer, pauser):
        claimer.begin()
        claimer.do(lambda connection: world.claim(connection, 2))
        pauser.do(_pause)
        claimer.rollback()
        world.stepper.release([pauser])
    assert _answer(world) == "blocked"
    assert world.claim(world.own, 10) == []
    _resume(world.own)
    world.check()
    world.drain()


def test_a_killed_claim_lets_the_pause_through(world: World) -> None:
    world.reset()
    with world.sessions(2) as (claimer, pauser):
        claimer.begin()
        claimer.do(lambda connection: world.claim(connection, 2))
        pauser.do(_pause)
        assert pauser.is_waiting
        claimer.kill()
        world.stepper.release([pauser])
    assert _answer(world) == "blocked"
    _resume(world.own)
    world.drain()


def test_a_pause_that_is_not_committed_holds_claims_off_and_leaves_nothing(world: World) -> None:
    world.reset()
    with world.sessions(1) as (pauser,):
        pauser.begin()
        pauser.do(_pause)
        assert _answer(world) == "busy"
        pauser.rollback()
    assert _answer(world) == "got"
    world.check()
    world.drain()


def test_a_resume_that_is_not_committed_changes_nothing_yet(world: World) -> None:
    world.reset()
    _pause(world.own)
    with world.sessions(1) as (operator,):
        operator.begin()
        operator.do(_resume)
        assert _answer(world) == "blocked"
        operator.commit()
    assert _answer(world) == "got"
    world.drain()


def test_what_was_published_during_a_pause_hides_behind_no_floor(world: World) -> None:
    world.reset()
    world.claim(world.own, 1)
    _pause(world.own)
    with world.sessions(1) as (producer,):
        producer.begin()
        producer.do(world.publish)
        world.publish(world.own, "b")
        assert world.claim(world.own, 5) == []
        producer.commit()
        assert world.claim(world.own, 5) == []
    _resume(world.own)
    world.check()
    world.drain()


def test_a_paused_queue_leaves_the_others_their_turn(world: World) -> None:
    world.reset()
    _pause(world.own, "1 hour")
    answers = world.own.execute(
        "select answer, look_again is not null from laneway.claim_v1("
        "array['q', 'other'], 5, '1 hour', 'w')"
    ).fetchall()
    assert answers == [("blocked", True)]
    _resume(world.own)
    world.drain()


def _later(world: World) -> int:
    id = world.publish(world.own)
    (fence,) = [fence for found, fence in world.claim(world.own, 10) if found == id]
    world.own.execute(
        "select laneway.defer_v1(%s, %s, array['1 hour'::interval], '{}', '{true}', '{}', '{}',"
        " '{}', '{}', '{}')",
        [[id], [fence]],
    )
    return id


def _run_now(connection: Connection, id: int) -> None:
    connection.execute("select laneway.run_now_v1(%s)", [[id]])


def _cancel(connection: Connection, id: int) -> None:
    connection.execute("select laneway.cancel_v1(%s)", [[id]])


def test_run_now_and_cancel_of_one_message_come_one_after_the_other(world: World) -> None:
    for end in ("commit", "rollback"):
        world.clear()
        id = _later(world)
        with world.sessions(2) as (operator, other):
            operator.begin()
            operator.do(partial(_run_now, id=id))
            other.do(partial(_cancel, id=id))
            assert other.is_waiting
            getattr(operator, end)()
            world.stepper.release([other])
        world.check()
        left = world.own.execute("select count(*) from laneway.message").fetchone()
        assert left == (0,)
        world.drain()


def test_a_claim_passes_a_channel_whose_message_is_made_due(world: World) -> None:
    world.clear()
    id = _later(world)
    world.publish(world.own, "b")
    with world.sessions(1) as (operator,):
        operator.begin()
        operator.do(lambda connection: _run_now(connection, id))
        assert len(world.claim(world.own, 10)) == 1
        operator.commit()
    world.check()
    assert [found for found, _ in world.claim(world.own, 10)] == [id]
    world.check()
    world.drain()


def test_a_message_made_due_twice_is_counted_once(world: World) -> None:
    world.clear()
    id = _later(world)
    with world.sessions(2) as (one, two):
        one.begin()
        one.do(lambda connection: _run_now(connection, id))
        two.do(lambda connection: _run_now(connection, id))
        assert two.is_waiting
        one.commit()
        world.stepper.release([two])
    world.check()
    assert [found for found, _ in world.claim(world.own, 10)] == [id]
    world.drain()
