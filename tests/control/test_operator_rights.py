"""Every verb with its right and without it, and inside and outside a scope of channels."""

import inspect
from dataclasses import asdict

import pytest

from laneway.errors import InvalidOption, NotAllowed, ScheduleMissing
from laneway.operator import ADMIN, OPERATOR, VERBS, VIEWER, Operator, Principal, Right
from tests.control.operator_calls import CALLS, MINE, THEIRS, World, a_world


def _public() -> set[str]:
    return {name for name, _ in inspect.getmembers(Operator, callable) if not name.startswith("_")}


def test_every_public_method_is_in_the_table_and_called_here() -> None:
    assert _public() == set(VERBS) == set(CALLS)


def _state(world: World) -> object:
    """Whatever a verb could change."""
    queue = world.queue
    letters = [asdict(letter) for letter in queue.dead_letters.list()]
    return (
        queue.messages(limit=1000),
        queue.channels(),
        letters,
        queue.schedules.list(),
        queue.subscriptions(),
        queue.settings(),
        queue.limits.list(),
        queue.fairness(),
        queue.operations.list(),
    )


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_verb_needs_its_right_and_no_other(name: str) -> None:
    right = VERBS[name].right
    with a_world() as world:
        before = _state(world)
        without = Operator(world.queue, Principal("ann", ADMIN - {right}))
        with pytest.raises(NotAllowed, match=f"needs the right '{right.value}'"):
            CALLS[name](without, world, MINE)
        assert _state(world) == before
        CALLS[name](Operator(world.queue, Principal("ann", frozenset({right}))), world, MINE)
        if not VERBS[name].acts and name != "run_operation":
            assert _state(world) == before


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_scope_hides_the_other_channels(name: str) -> None:
    with a_world() as world:
        before = _state(world)
        scoped = Operator(world.queue, Principal("ann", ADMIN, ("mine/",)))
        entry = VERBS[name]
        if entry.scope in ("refused", "checked"):
            with pytest.raises(NotAllowed):
                CALLS[name](scoped, world, THEIRS)
        else:
            try:
                answer = CALLS[name](scoped, world, THEIRS)
            except (ScheduleMissing, InvalidOption):
                answer = None
            assert "theirs" not in repr(answer)
        assert _state(world) == before
        if entry.scope != "refused":
            CALLS[name](scoped, world, MINE)


def test_counts_of_a_scope_are_those_of_its_channels() -> None:
    with a_world() as world:
        scoped = Operator(world.queue, Principal("ann", ADMIN, ("mine/",)))
        (stats,) = scoped.stats()
        assert (stats.waiting, stats.scheduled, stats.dead, stats.channels) == (1, 1, 1, 1)
        assert [info.channel for info in scoped.channels()] == [MINE]
        assert {info.channel for info in scoped.messages()} == {MINE}
        assert scoped.messages(channel=THEIRS) == []
        assert [letter.channel for letter in scoped.dead_letters()] == [MINE]
        assert scoped.count_dead_letters(kind="mail") == 1
        assert [schedule.name for schedule in scoped.schedules()] == ["of mine/a"]
        assert [a.status for a in scoped.cancel(list(world.waiting.values()))] == [
            "cancelled",
            "absent",
        ]


def test_pages_of_channels_stay_in_the_scope() -> None:
    with a_world() as world:
        for name in ("mine/b", "ours/1", "ours/2", "mine/"):
            world.queue.publish(1, channel=name)
        prefixes = ("ours/", "mine/", "mine/b")
        scoped = Operator(world.queue, Principal("ann", VIEWER, prefixes))
        found, after = [], None
        for _ in range(20):
            page = scoped.channels(limit=1, after=after)
            found += [info.channel for info in page]
            if (after := page.next) is None:
                break
        assert sorted(found) == ["mine/", MINE, "mine/b", "ours/1", "ours/2"]
        assert [info.channel for info in scoped.channels(prefix="ours/2")] == ["ours/2"]
        assert scoped.channels(prefix="theirs") == scoped.channels(channel=THEIRS) == []


def test_a_bulk_verb_keeps_to_the_scope() -> None:
    with a_world() as world:
        scoped = Operator(world.queue, Principal("ann", ADMIN, ("mine/",)))
        assert scoped.redrive(channel=THEIRS) == 0
        assert scoped.redrive(kind="mail") == 1
        assert {letter.channel for letter in world.queue.dead_letters.list()} == {THEIRS}
        assert scoped.discard(list(world.dead.values())) == 0


def test_payloads_are_in_no_list() -> None:
    with a_world() as world:
        for rights in (VIEWER, ADMIN):
            found = Operator(world.queue, Principal("ann", rights))
            rows = [*found.dead_letters(), *found.preview(reason="no").sample, *found.schedules()]
            assert len(rows) > 2
            assert {row.payload for row in rows} == {b""}


def test_the_payload_of_a_schedule_needs_the_right() -> None:
    with a_world() as world:
        world.queue.schedule("canary", "secret", every=3600)
        for rights, payload in ((VIEWER | {Right.SCHEDULES}, b""), (ADMIN, b"secret")):
            found = Operator(world.queue, Principal("ann", rights))
            assert found.schedule("canary").payload == payload
            assert found.pause_schedule("canary").payload == payload
            assert found.resume_schedule("canary").payload == payload


def test_principals_say_who_they_are() -> None:
    assert VIEWER < OPERATOR < ADMIN == frozenset(Right)
    assert Principal("ann", frozenset({"view"})).rights == VIEWER  # type: ignore[arg-type]
    with pytest.raises(InvalidOption):
        Principal("")
    with pytest.raises(InvalidOption):
        Principal("ann", VIEWER, ("",))
    with pytest.raises(InvalidOption):
        Principal("ann", VIEWER, "mine/")  # type: ignore[arg-type]
    with a_world() as world, pytest.raises(InvalidOption):
        Operator(world.queue, Principal("ann"), source="shell")  # type: ignore[arg-type]


def test_refusals_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with a_world() as world, pytest.raises(NotAllowed):
        Operator(world.queue, Principal("ann")).redrive(kind="mail")
    assert "refused redrive to 'ann'" in caplog.text
