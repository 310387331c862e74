"""Every action of an operator leaves one row, and none without its action."""

import sqlite3
from pathlib import Path

import pytest

from laneway import Queue
from laneway.errors import DatabaseFailed, LanewayError, NotAllowed
from laneway.operator import ADMIN, VERBS, Operator, Principal
from tests.control.operator_calls import CALLS, MINE, THEIRS, a_world

ACTS = sorted(name for name, verb in VERBS.items() if verb.acts)


def _state(queue: Queue) -> object:
    limits = queue.limits.list(), queue.fairness()
    return queue.messages(limit=100), queue.channels(), queue.settings(), limits


@pytest.mark.parametrize("name", sorted(VERBS))
def test_an_action_leaves_one_row_and_a_look_none(name: str) -> None:
    with a_world() as world:
        operator = Operator(world.queue, Principal("ann", ADMIN), source="dashboard")
        CALLS[name](operator, world, MINE)
        entries = world.queue.audit()
        assert [e.action for e in entries] == ([name] if VERBS[name].acts else [])
        assert {(e.actor, e.source) for e in entries} <= {("ann", "dashboard")}


@pytest.mark.parametrize("name", ACTS)
def test_a_refused_action_leaves_no_row(name: str) -> None:
    with a_world() as world:
        without = Operator(world.queue, Principal("ann", ADMIN - {VERBS[name].right}))
        with pytest.raises(NotAllowed):
            CALLS[name](without, world, MINE)
        scoped = Operator(world.queue, Principal("ann", ADMIN, ("mine/",)))
        try:
            CALLS[name](scoped, world, THEIRS)
        except LanewayError:
            assert not world.queue.audit()
        assert all("theirs" not in str(entry.target) for entry in world.queue.audit())


@pytest.mark.parametrize("name", ACTS)
def test_an_action_whose_row_cannot_be_written_does_nothing(name: str, tmp_path: Path) -> None:
    with a_world(tmp_path / "jobs.db") as world:
        with sqlite3.connect(tmp_path / "jobs.db") as direct:
            direct.execute(
                "create trigger refuse before insert on laneway_audit "
                "begin select raise(abort, 'the audit is full'); end"
            )
        before, letters = _state(world.queue), world.queue.dead_letters.list()
        operator = Operator(world.queue, Principal("ann", ADMIN))
        with pytest.raises(DatabaseFailed, match="the audit is full"):
            CALLS[name](operator, world, MINE)
        assert _state(world.queue) == before
        assert world.queue.dead_letters.list() == letters
