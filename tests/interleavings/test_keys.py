"""Key modes: every pair of verbs that meet at a key, in a sample of orderings.

LANEWAY_ORDERINGS=20 takes a larger sample, LANEWAY_ORDERINGS=all every one.
"""

import os
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import combinations_with_replacement
from typing import NamedTuple

import pytest

from laneway.drivers.caller.sync import run_on
from laneway.engines.postgresql import PostgresqlEngine
from laneway.model import Draft, KeyMode
from tests.interleavings.scripts import ENDS, orderings
from tests.interleavings.stepper import Connection, Session
from tests.interleavings.world import World

_WANTED = os.environ.get("LANEWAY_ORDERINGS", "1")
_MOMENT = timedelta(milliseconds=1)


class Scene(NamedTuple):
    """``running`` has the key r, and ``behind`` waits behind it if there is one; ``waiting`` has
    the key w; ``dead`` is a dead letter with the key d. Nobody has the key n."""

    world: World
    running: int
    fence: int
    waiting: int
    dead: int
    behind: int


Verb = Callable[[Scene, Connection], object]


def _publish(world: World, connection: Connection, *keys: str, mode: KeyMode | None = None) -> None:
    drafts = [
        Draft(
            b"x",
            "q",
            "a",
            "",
            "text/plain",
            None,
            key,
            None,
            0,
            _MOMENT if mode and mode[0] else None,
            None,
            None,
            None,
            1,
            None,
            mode,
        )
        for key in keys
    ]
    for result in run_on(connection, "postgresql", PostgresqlEngine().messages.publish(drafts)):
        if result.status == "published" and result.id is not None:
            world.when_committed(connection, partial(world.published.add, result.id))


def _replace(*keys: str) -> Verb:
    return lambda scene, on: _publish(scene.world, on, *keys, mode=KeyMode(None))


def _debounce(key: str) -> Verb:
    return lambda scene, on: _publish(scene.world, on, key, mode=KeyMode(10 * _MOMENT))


def _keep(*keys: str) -> Verb:
    return lambda scene, on: _publish(scene.world, on, *keys)


def _settle(verb: str) -> Verb:
    return lambda s, on: s.world.settle(on, verb, s.running, s.fence)


def _call(function: str, ids: Callable[[Scene], list[int]]) -> Verb:
    query = f"select laneway.{function}(%s)".encode()
    return lambda scene, on: on.execute(query, [ids(scene)])


def _claim(scene: Scene, connection: Connection) -> None:
    scene.world.claim(connection, 5)


def _upkeep(scene: Scene, connection: Connection) -> None:
    """The running message dies: its lease has run out, and it had one attempt."""
    connection.execute("select laneway.upkeep_v1()")


VERBS: dict[str, Verb] = {
    "replace running": _replace("r"),
    "replace waiting": _replace("w"),
    "debounce waiting": _debounce("w"),
    "replace dead": _replace("d"),
    "replace new": _replace("n"),
    "replace all": _replace("w", "n", "r"),
    "replace all backwards": _replace("r", "n", "w"),
    "publish all": _keep("r", "n", "w"),
    "claim": _claim,
    "complete": _settle("complete"),
    "defer": _settle("defer"),
    "fail": _settle("fail"),
    "give back": _settle("give_back"),
    "cancel": _call("cancel_v1", lambda s: [s.waiting, s.behind]),
    "run now": _call("run_now_v1", lambda s: [s.waiting, s.behind]),
    "redrive": _call("redrive_v1", lambda s: [s.dead]),
    "discard": _call("discard_v1", lambda s: [s.dead]),
    "upkeep": _upkeep,
}
_ALONE = {"claim", "upkeep"}  # in no transaction of a caller
_MODES = {name for name in VERBS if name.startswith(("replace", "debounce"))}
_ENDS = {"complete", "defer", "fail", "cancel", "run now", "upkeep"}
PAIRS = [
    pair for pair in combinations_with_replacement(VERBS, 2) if _MODES & {*pair} or {*pair} <= _ENDS
]


def _scene(world: World, behind: bool) -> Scene:
    world.clear()
    _publish(world, world.own, "d")
    ((dead, fence),) = world.claim(world.own, 1)
    world.settle(world.own, "fail", dead, fence)
    _publish(world, world.own, "r")
    ((running, fence),) = world.claim(world.own, 1)
    if behind:
        _publish(world, world.own, "r", mode=KeyMode(None))
    _publish(world, world.own, "w")
    rows = world.own.execute("select substr(key, 17), message_id from laneway.dedupe").fetchall()
    found: dict[str, int] = dict(rows)
    world.fences = {running: fence}
    return Scene(world, running, fence, found["w"], dead, found["r"] if behind else 0)


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
        ends = chosen.choices(ENDS, (4, 1, 1), k=2)
        for behind in (False, True) if _WANTED == "all" else (chosen.random() < 0.5,):
            _play(world, names, merge, ends, behind)


def _play(
    world: World, names: tuple[str, str], merge: list[int], ends: list[str], behind: bool
) -> None:
    scene = _scene(world, behind)
    if "upkeep" in names:
        world.own.execute("update laneway.lease set until = clock_timestamp() - interval '1 s'")
    with world.sessions(2) as sessions:
        steps = [_steps(name, scene, end) for name, end in zip(names, ends, strict=True)]
        try:
            for number in merge:
                next(steps[number])(sessions[number])
                waits = sessions[number].is_waiting
                assert not (waits and names[number] == "upkeep"), "upkeep waits"
                world.stepper.release(sessions)
                world.check()
            assert not any(session.is_waiting for session in sessions), "somebody still waits"
            _drain(world)
        except BaseException as error:
            error.add_note(f"{names} in the order {merge}, ends {ends}, behind: {behind}")
            raise


@pytest.mark.parametrize("end", ["commit", "rollback", "kill"])
@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_an_end_waits_for_who_parks_behind_it(world: World, verb: str, end: str) -> None:
    """Else it would not see what waits behind it, and nobody would start that."""
    scene = _scene(world, behind=False)
    with world.sessions(2) as (publisher, worker):
        publisher.begin()
        publisher.do(partial(VERBS["replace running"], scene))
        worker.do(partial(VERBS[verb], scene))
        assert worker.is_waiting
        getattr(publisher, end)()
        world.stepper.release([worker])
        assert not worker.is_waiting
    world.check()
    _drain(world)


@pytest.mark.parametrize("verb", ["complete", "fail"])
def test_who_parks_behind_it_waits_for_an_end(world: World, verb: str) -> None:
    """And then finds that the key is free, or a dead letter's."""
    scene = _scene(world, behind=False)
    with world.sessions(2) as (publisher, worker):
        worker.begin()
        worker.do(partial(VERBS[verb], scene))
        publisher.do(partial(VERBS["replace running"], scene))
        assert publisher.is_waiting
        worker.commit()
        world.stepper.release([publisher])
        assert not publisher.is_waiting
    world.check()
    row = world.own.execute(
        "select behind from laneway.dedupe where substr(key, 17) = 'r'"
    ).fetchone()
    assert row == (None,)
    _drain(world)


@pytest.mark.parametrize("verb", ["replace waiting", "debounce waiting"])
def test_a_claim_never_takes_what_is_being_replaced(world: World, verb: str) -> None:
    scene = _scene(world, behind=False)
    with world.sessions(1) as (publisher,):
        publisher.begin()
        publisher.do(partial(VERBS[verb], scene))
        assert world.claim(world.own, 5) == []
        publisher.commit()
    world.check()
    _drain(world)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_cancelled_behind_a_message_that_ends(world: World, end: str) -> None:
    """Whoever comes first: the key is free when both have ended."""
    for first, second in (("cancel", "complete"), ("complete", "cancel")):
        scene = _scene(world, behind=True)
        with world.sessions(2) as (one, two):
            one.begin()
            one.do(partial(VERBS[first], scene))
            two.do(partial(VERBS[second], scene))
            assert two.is_waiting
            getattr(one, end)()
            world.stepper.release([two])
            assert not two.is_waiting
        world.check()
        _drain(world)
        held = world.own.execute(
            "select 1 from laneway.dedupe where substr(key, 17) = 'r'"
        ).fetchone()
        # Rolled back, the running message dies of its lost lease and keeps the key.
        assert held is None or end == "rollback"


def _drain(world: World) -> None:
    """All that is not dead is delivered, one after the other for each key."""
    for _ in range(2):
        world.own.execute("update laneway.lease set until = clock_timestamp() - interval '1 s'")
        world.own.execute("select laneway.upkeep_v1()")
        while got := world.claim(world.own):
            world.check()
            ids, fences = zip(*got, strict=True)
            world.own.execute("select laneway.complete_v1(%s, %s)", [list(ids), list(fences)])
    world.check()
    left = world.own.execute("select id, key, due from laneway.message").fetchall()
    assert not left, f"never delivered: {left}"
