"""The step lists: each verb as one session would run it, begun and ended in every way."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tests.interleavings.stepper import Connection, Session
from tests.interleavings.world import World

Verb = Callable[[World, Connection], object]
ENDS = ("commit", "rollback", "kill")
ISOLATIONS = ("read committed", "repeatable read", "serializable")


class Script(NamedTuple):
    """``open``: it may sit in a caller's transaction; else it is one statement of our own.

    ``waits_for``: the verbs whose open transaction may keep it waiting, and no other.
    """

    name: str
    verb: Verb
    open: bool = False
    waits_for: frozenset[str] = frozenset()


class Run(NamedTuple):
    """A script with its way to end."""

    script: Script
    end: str = "commit"
    isolation: str = "read committed"

    def steps(self, world: World) -> list[Callable[[Session], None]]:
        def verb(session: Session) -> None:
            session.do(partial(self.script.verb, world))

        if not self.script.open:
            return [verb]
        begin = partial(Session.begin, isolation=self.isolation)
        return [begin, verb, getattr(Session, self.end)]

    def __str__(self) -> str:
        words = [self.script.name]
        if self.script.open:
            words += [self.end, self.isolation]
        return " ".join(words)


def _settle(name: str) -> Script:
    return Script(
        name,
        lambda world, connection: world.settle(connection, name, world.held),
        True,
        frozenset({"complete", "defer", "fail", "extend", "give_back"}),
    )


def _cancel(world: World, connection: Connection) -> None:
    connection.execute("select laneway.cancel_v1(%s)", [[world.held, *world.idle]])


def _on_dead(verb: str) -> Script:
    query = {
        "redrive": b"select laneway.redrive_v1(%s)",
        "discard": b"select laneway.discard_v1(%s)",
    }[verb]
    return Script(verb, lambda world, connection: connection.execute(query, [[world.dead]]), True)


def _say(name: str, query: str) -> Script:
    return Script(name, lambda world, connection: connection.execute(query.encode()))


_COMPLETE_KEYED = "complete keyed"
_EXTEND_EXPIRED = "extend expired"

SCRIPTS = (
    Script("publish", lambda world, connection: world.publish(connection), True),
    Script("publish high", lambda world, connection: world.publish(connection, priority=1), True),
    Script("publish elsewhere", lambda world, connection: world.publish(connection, "b"), True),
    Script(
        "publish keyed",
        lambda world, connection: world.publish(connection, key="new"),
        True,
        frozenset({"publish keyed"}),
    ),
    Script(
        "publish known key",
        lambda world, connection: world.publish(connection, key="k"),
        True,
        frozenset({"publish known key"}),
    ),
    Script("claim", lambda world, connection: world.claim(connection, 2)),
    Script("claim by kind", lambda world, connection: world.claim(connection, 2, kinds=[""])),
    Script("claim other kind", lambda world, connection: world.claim(connection, 2, kinds=["b"])),
    *(_settle(name) for name in ("complete", "defer", "fail", "extend", "give_back")),
    Script(
        _COMPLETE_KEYED,
        lambda world, connection: world.settle(connection, "complete", world.keyed),
        True,
        frozenset({_COMPLETE_KEYED}),
    ),
    Script(
        _EXTEND_EXPIRED,
        lambda world, connection: world.settle(connection, "extend", world.expired),
        True,
        frozenset({_EXTEND_EXPIRED}),
    ),
    Script(
        "complete late",
        lambda world, connection: world.settle(connection, "complete", world.held, 0),
        True,
    ),
    Script("cancel", _cancel),
    _say("upkeep", "select laneway.upkeep_v1()"),
    _say("lapse", "select laneway.lapse_v1(10)"),
    _say("pause", "select laneway.pause_v1('q', array['a'], true)"),
    _say("remove", "select laneway.remove_v1('q', array['a'])"),
    Script("limit", lambda world, connection: world.set_policy(connection, 1)),
    Script("no limit", lambda world, connection: world.set_policy(connection)),
    _on_dead("redrive"),
    _on_dead("discard"),
)
BY_NAME = {script.name: script for script in SCRIPTS}


def runs(script: Script) -> Iterator[Run]:
    """Every way to begin and end it."""
    if not script.open:
        yield Run(script)
        return
    for end in ENDS:
        for isolation in ISOLATIONS:
            yield Run(script, end, isolation)


def orderings(lengths: Sequence[int]) -> Iterator[list[int]]:
    """All ways to merge step lists of these lengths: the number of the session at each turn."""
    if not any(lengths):
        yield []
    for number, length in enumerate(lengths):
        if length:
            rest = [*lengths[:number], length - 1, *lengths[number + 1 :]]
            for tail in orderings(rest):
                yield [number, *tail]
