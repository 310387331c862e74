"""Two sessions on one file: one stops after each of its statements while the other changes the same
message and channel; or the first one dies in the middle.

Where the first holds the write lock, the second must wait. Where it has only read, the second goes
first, and what the first has read is out of date.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from laneway import Policy
from laneway.drivers.sqlite.runner import SqliteRunner, SqliteTransaction
from laneway.drivers.sqlite.url import connect, read_url
from laneway.drivers.sqlite.write_queue import WriteQueue, is_busy
from laneway.engines.sqlite import SqliteEngine
from laneway.model import Deferral, Draft, Extension, Failure, HeldLease, KeyMode, Return
from laneway.plan import Plan, Statement
from tests.model.sqlite import VIOLATIONS

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
LATER = LEASE + timedelta(seconds=1)


class Scene(NamedTuple):
    """A channel of two at a time with one message of each kind."""

    held: HeldLease
    waiting: int
    dead: int


def draft(key: str | None = None, channel: str = "a", mode: KeyMode | None = None) -> Draft:
    rest = (None, key, None, 0, None, None, None, None, 3, None, mode)
    return Draft(b"x", "q", channel, "", "text/plain", *rest)


def deferral(held: HeldLease) -> Deferral:
    return Deferral(*held, None, None, True, None, None, None, None, None)


def engine(after: timedelta = timedelta(0)) -> SqliteEngine:
    return SqliteEngine(clock=lambda: NOW + after)


Verb = Callable[[SqliteEngine, Scene], Plan[Any]]
VERBS: dict[str, Verb] = {
    "publish": lambda e, s: e.messages.publish([draft("key"), draft(), draft(channel="b")]),
    "replace": lambda e, s: e.messages.publish(
        [draft(k, mode=KeyMode(None)) for k in ("key", "new", "w")]
    ),
    "claim": lambda e, s: e.claims.claim(("q",), 5, LEASE, "w"),
    "claim by kind": lambda e, s: e.claims.claim(("q",), 5, LEASE, "w", ("",)),
    "claim other kind": lambda e, s: e.claims.claim(("q",), 5, LEASE, "w", ("b", "c")),
    "complete": lambda e, s: e.leases.complete([s.held]),
    "defer": lambda e, s: e.leases.defer([deferral(s.held)]),
    "fail": lambda e, s: e.leases.fail([Failure(*s.held, "no", None, None)]),
    "extend": lambda e, s: e.leases.extend([Extension(*s.held, LEASE)]),
    "give back": lambda e, s: e.leases.give_back([Return(*s.held, None)]),
    "cancel": lambda e, s: e.messages.cancel([s.held.id, s.waiting, s.dead]),
    "limit": lambda e, s: e.channels.set_policies(
        "q", {"a": Policy(concurrency=1, rate=1, burst=1)}
    ),
    "pause": lambda e, s: e.channels.pause("q", ["a"], True),
    "remove": lambda e, s: e.channels.remove("q", ["a"]),
    "redrive": lambda e, s: e.dead_letters.redrive([s.dead], None, timedelta(0)),
    "discard": lambda e, s: e.dead_letters.discard([s.dead]),
    "upkeep": lambda e, s: e.maintenance.upkeep(),
}


class Session:
    """A plan on a connection of its own, one statement at a time."""

    def __init__(self, path: Path, plan: Plan[Any]) -> None:
        self._connection = connect(read_url(f"sqlite:///{path}?synchronous=normal"))
        self._connection.execute("pragma synchronous = off")  # no power is cut here
        self._transaction = SqliteTransaction(self._connection, WriteQueue(None, 0), 0)
        self._plan = plan
        self._next: Statement | None = next(plan)

    def step(self) -> bool:
        """Whether there was one more statement."""
        if self._next is None:
            return False
        try:
            self._next = self._plan.send(self._transaction.execute(self._next))
        except StopIteration:
            self._next = None
        return True

    @property
    def writing(self) -> bool:
        return self._connection.in_transaction

    def finish(self) -> None:
        while self.step():
            pass
        self._transaction.commit()
        self._connection.close()

    def die(self) -> None:
        """As a killed process does: nothing is rolled back by hand."""
        self._connection.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Scene]:
    """The file that every ordering begins with."""
    path = tmp_path_factory.mktemp("stage") / "stage.db"
    runner = SqliteRunner(f"sqlite:///{path}", pool_size=1)
    runner.run(engine().schema.install())
    runner.run(engine().messages.publish([draft()]))
    (dead,) = runner.run(engine().claims.claim(("q",), 1, LEASE, "w")).rows
    runner.run(engine().leases.fail([Failure(dead[0], dead[1], "no", None, None)]))
    runner.run(engine().channels.set_policies("q", {"a": Policy(concurrency=2)}))
    held, waiting = (
        p.id for p in runner.run(engine().messages.publish([draft("key"), draft("w")]))
    )
    (row,) = runner.run(engine().claims.claim(("q",), 1, LEASE, "w")).rows
    assert row[0] == held and waiting is not None
    runner.close()
    return path, Scene(HeldLease(row[0], row[1]), waiting, dead[0])


def copies(stage: Path, folder: Path) -> Iterator[Path]:
    number = 0
    while True:
        number += 1
        yield Path(shutil.copy(stage, folder / f"{number}.db"))


def do(path: Path, plan: Plan[Any]) -> None:
    Session(path, plan).finish()


def check(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("pragma synchronous = off")
    found = [row[0] for row in connection.execute(VIOLATIONS)]
    found += [f"twice: {row}" for row in connection.execute(TWICE)]
    connection.close()
    assert found == []


TWICE = "select message_id from laneway_history where terminal group by 1 having count(*) > 1"


def steps_of(path: Path, plan: Plan[Any]) -> int:
    session, steps = Session(path, plan), 0
    while session.step():
        steps += 1
    session.finish()
    return steps


@pytest.mark.repeats("every pair of verbs on PostgreSQL in tests/interleavings")
@pytest.mark.parametrize("first", VERBS)
def test_every_pair_in_every_order(first: str, stage: tuple[Path, Scene], tmp_path: Path) -> None:
    path, scene = stage
    fresh = copies(path, tmp_path)
    late = engine(LATER) if first == "upkeep" else engine()
    steps = steps_of(next(fresh), VERBS[first](late, scene))
    assert steps
    for second, pause in product(VERBS, range(steps + 1)):
        place = next(fresh)
        other = engine(LATER) if second == "upkeep" else engine()
        session = Session(place, VERBS[first](late, scene))
        for _ in range(pause):
            session.step()
        if session.writing:
            assert must_wait(place, VERBS[second](other, scene))
            session.finish()
            do(place, VERBS[second](other, scene))
        else:
            do(place, VERBS[second](other, scene))
            session.finish()
        check(place)


def must_wait(place: Path, plan: Plan[Any]) -> bool:
    """Whether a verb without patience is refused the lock, unless it has nothing to write."""
    session = Session(place, plan)
    try:
        while session.step():
            pass
        return not session.writing
    except sqlite3.OperationalError as error:
        return is_busy(error)
    finally:
        session.die()


@pytest.mark.parametrize("first", VERBS)
def test_a_death_between_any_two_statements(
    first: str, stage: tuple[Path, Scene], tmp_path: Path
) -> None:
    path, scene = stage
    fresh = copies(path, tmp_path)
    late = engine(LATER) if first == "upkeep" else engine()
    steps = steps_of(next(fresh), VERBS[first](late, scene))
    for pause in range(steps + 1):
        place = next(fresh)
        session = Session(place, VERBS[first](late, scene))
        for _ in range(pause):
            session.step()
        session.die()
        check(place)
        do(place, VERBS[first](late, scene))
        check(place)
