"""Shared limits: every pair of verbs that meet at one, in a sample of orderings.

LANEWAY_ORDERINGS=20 takes a larger sample, LANEWAY_ORDERINGS=all every one.
"""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import combinations_with_replacement
from typing import NamedTuple

import pytest

from laneway.drivers.caller.sync import run_on
from laneway.engines.postgresql import PostgresqlEngine
from laneway.model import Draft
from laneway.plan import Taken
from tests.interleavings.scripts import ENDS, orderings
from tests.interleavings.stepper import Connection, Session
from tests.interleavings.world import World

_WANTED = os.environ.get("LANEWAY_ORDERINGS", "1")
_HEADERS = '{"laneway-limits": ["api"]}'
_OVER = """
select k.name, count(*), l.concurrency
from laneway.limit_lease k
join laneway.lease e on e.message_id = k.message_id and e.fence = k.fence
join laneway.shared_limit l on l.name = k.name
where l.concurrency is not null
group by k.name, l.concurrency having count(*) > greatest(l.concurrency, %s)
"""


class Scene(NamedTuple):
    """The limit "api" lets two run: these are ``running``, of the channels a and b. ``waiting``
    wait for it, of the same channels; two more of a have just been published."""

    world: World
    running: list[tuple[int, int]]
    waiting: list[int]


Verb = Callable[[Scene, Connection], object]


def _publish(world: World, connection: Connection, *channels: str) -> None:
    drafts = [
        Draft(b"x", "q", c, "", "text/plain", _HEADERS, None, None, 0, None, None, None, None, 9)
        for c in channels
    ]
    for result in run_on(connection, "postgresql", PostgresqlEngine().messages.publish(drafts)):
        assert result.id is not None
        world.when_committed(connection, partial(world.published.add, result.id))


def _claim(connection: Connection, engine: PostgresqlEngine | None = None) -> Taken:
    engine = engine or PostgresqlEngine()
    plan = engine.claims.claim(("q",), 5, timedelta(hours=1), "tester")
    return run_on(connection, "postgresql", plan)


def _call(sql: str) -> Verb:
    query = f"select laneway.{sql}".encode()
    return lambda scene, on: on.execute(query)


def _settle(verb: str) -> Verb:
    return lambda s, on: s.world.settle(on, verb, *s.running[0])


def _sweep(scene: Scene, on: Connection) -> None:
    on.execute("select laneway.sweep_limited_v1(%s, '{api}')", [scene.waiting[:1]])


def _replace(scene: Scene, on: Connection) -> None:
    """Another time for what waits, and no limits."""
    on.execute("select laneway.run_now_v1(%s)", [scene.waiting[:1]])


VERBS: dict[str, Verb] = {
    "publish": lambda s, on: _publish(s.world, on, "a", "c"),
    "claim": lambda s, on: _claim(on),
    "start": _call("start_limited_v1('{q}', null, 5, interval '1 hour', 'tester')"),
    "start one": _call("start_limited_v1('{q}', null, 1, interval '1 hour', 'tester')"),
    "sweep": _sweep,
    "complete": _settle("complete"),
    "fail": _settle("fail"),
    "give back": _settle("give_back"),
    "cancel": lambda s, on: on.execute("select laneway.cancel_v1(%s)", [s.waiting[:2]]),
    "run now": _replace,
    "raise": _call("set_shared_limit_v1('api', '{concurrency}', 3, null, null)"),
    "lower": _call("set_shared_limit_v1('api', '{concurrency}', 1, null, null)"),
    "remove limit": _call("remove_shared_limit_v1('api')"),
    "limit a": lambda s, on: s.world.set_policy(on, 1),
    "pause a": _call("pause_v1('q', array['a'], true)"),
    "cleanup": _call("cleanup_limits_v1(10)"),
    "upkeep": _call("upkeep_v1()"),
}
_ALONE = {"upkeep"}
_STARTS = {"claim", "start", "start one", "sweep", "cleanup"}
PAIRS = [pair for pair in combinations_with_replacement(VERBS, 2) if _STARTS & {*pair}]


def _scene(world: World) -> Scene:
    world.clear()
    world.own.execute("select laneway.set_shared_limit_v1('api', '{concurrency}', 2, null, null)")
    _publish(world, world.own, "a", "b")
    engine = PostgresqlEngine()
    running = [(row[0], row[1]) for row in _claim(world.own, engine).rows]
    assert len(running) == 2
    _publish(world, world.own, "a", "a", "b")
    while _claim(world.own, engine).look_again == timedelta(0):
        pass
    rows = world.own.execute("select message_id from laneway.limit_wait order by 1").fetchall()
    assert len(rows) == 3
    _publish(world, world.own, "a", "a")
    world.fences = dict(running)
    return Scene(world, running, [row[0] for row in rows])


def _steps(name: str, scene: Scene, end: str) -> Iterator[Callable[[Session], object]]:
    def verb(session: Session) -> None:
        session.do(partial(VERBS[name], scene))

    if name in _ALONE:
        return iter([verb])
    return iter([Session.begin, verb, getattr(Session, end)])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", PAIRS, ids=" + ".join)
def test_pair(world: World, names: tuple[str, str]) -> None:
    chosen = random.Random(" ".join(names))
    merges = list(orderings([1 if name in _ALONE else 3 for name in names]))
    wanted = merges if _WANTED == "all" else chosen.choices(merges, k=int(_WANTED))
    for merge in wanted:
        _play(world, names, merge, chosen.choices(ENDS, (4, 1, 1), k=2))


def _play(world: World, names: tuple[str, str], merge: list[int], ends: list[str]) -> None:
    scene = _scene(world)
    most = 2 if "lower" in names else 0
    with world.sessions(2) as sessions:
        steps = [_steps(name, scene, end) for name, end in zip(names, ends, strict=True)]
        try:
            for number in merge:
                next(steps[number])(sessions[number])
                world.stepper.release(sessions)
                _check(world, most)
            assert not any(session.is_waiting for session in sessions), "somebody still waits"
            _drain(world)
        except BaseException as error:
            error.add_note(f"{names} in the order {merge}, ends {ends}")
            raise


def _check(world: World, most: int = 0) -> None:
    world.check()
    over = world.own.execute(_OVER, [most]).fetchall()
    assert not over, f"more run than the limit lets: {over}"


def _drain(world: World) -> None:
    """All is delivered, and never more at once than the limit lets."""
    world.own.execute("select laneway.pause_v1('q', array['a'], false)")
    world.own.execute(
        "select laneway.set_policy_v1('q', '{a}', '{null}', '{null}', '{null}', '{null}', '{1}')"
    )
    for _ in range(2):
        world.own.execute("update laneway.lease set until = clock_timestamp() - interval '1 s'")
        world.own.execute("select laneway.upkeep_v1()")
    engine = PostgresqlEngine()
    for _ in range(40):
        taken = _claim(world.own, engine)
        _check(world)
        if taken.rows:
            ids, fences = [row[0] for row in taken.rows], [row[1] for row in taken.rows]
            world.own.execute("select laneway.complete_v1(%s, %s)", [ids, fences])
        elif taken.look_again != timedelta(0):
            break
    _check(world)
    left = world.own.execute("select id, channel, due from laneway.message").fetchall()
    assert not left, f"never delivered: {left}"


@contextmanager
def _held_before_lanes_are_locked(world: World, by: Session) -> Iterator[None]:
    """A start that has begun to look at lanes waits for ``by`` before it locks the first."""
    world.own.execute("alter table laneway.limit_clock rename to limit_clock_kept")
    world.own.execute(
        "create view laneway.limit_clock as select * from laneway.limit_clock_kept "
        "where pg_advisory_xact_lock_shared(21) is not null"
    )
    by.do(lambda on: on.execute("select pg_advisory_lock(21)"))
    try:
        yield
    finally:
        by.do(lambda on: on.execute("select pg_advisory_unlock(21)"))
        world.stepper.release([by])


def test_what_a_sweep_adds_while_a_start_looks_at_lanes_is_started_too(world: World) -> None:
    scene = _scene(world)
    ids, fences = zip(*scene.running, strict=True)
    world.own.execute("select laneway.complete_v1(%s, %s)", [list(ids), list(fences)])
    world.own.execute("select laneway.set_shared_limit_v1('api', '{concurrency}', 9, null, null)")
    try:
        with world.sessions(2) as (sweeps, starts):
            with _held_before_lanes_are_locked(world, sweeps):
                starts.do(partial(VERBS["start"], scene))
                assert starts.is_waiting
                sweeps.do(partial(_sweep, scene))
            world.stepper.release([starts])
            assert not starts.is_waiting
    finally:
        world.own.execute("drop view laneway.limit_clock")
        world.own.execute("alter table laneway.limit_clock_kept rename to limit_clock")
    hidden = world.own.execute(
        "select l.channel_id from laneway.limit_lane l where not l.waiting and exists ("
        "select from laneway.limit_wait w where w.channel_id = l.channel_id and w.released is null)"
    ).fetchall()
    assert not hidden, "what the sweep set aside is found by nobody"
    _drain(world)
