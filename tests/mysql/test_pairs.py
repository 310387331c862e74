"""Two sessions on the same messages and the same channel: one stops after each of its statements,
the other runs, the first one goes on. No deadlock, nobody waits who must not, and all is sound.

LANEWAY_EXHAUSTIVE=1 (`make pairs-mysql`) stops after every statement; else before the commit.
"""

import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from laneway import Policy, Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.drivers.mysql.sync import _execute
from laneway.engines.mysql import MysqlEngine
from laneway.model import Deferral, Draft, Extension, Failure, HeldLease, KeyMode, Return
from laneway.plan import Plan, Statement
from tests.model.mysql import TABLES, connect
from tests.mysql.invariants import violations

EXHAUSTIVE = os.environ.get("LANEWAY_EXHAUSTIVE") == "1"
MINUTE = timedelta(minutes=1)
MOMENT = 0.04  # seconds; a verb that waits for no lock is done by then
START = datetime.now(UTC) - timedelta(days=1)


class Setup:
    """A channel with a message in every state, and two sessions."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.observer = connect(url, autocommit=True)
        self.now = START
        self.queue = Queue(url, clock=self.clock, upkeep_every=None, group_commit=False)
        self.queue.install()
        self.queue.configure(backoff_initial=timedelta(0), backoff_max=timedelta(0))
        self.sessions = Session(connect(url)), Session(connect(url))

    def close(self) -> None:
        self.queue.close()
        self.observer.close()
        for session in self.sessions:
            session.connection.close()

    def clock(self) -> datetime:
        return self.now

    def set_up(self) -> None:
        with self.observer.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"delete from `laneway_{table}`")  # noqa: S608
            cursor.execute("update laneway_turnstile set by_kind = 0")
        self.now = START
        self.queue.set_policies({"a": Policy(concurrency=5)})
        self.queue.publish("keyed", channel="a", key="k")
        self.queue.publish("keyed", channel="a", key="m")
        published = self.queue.publish_many(["x"] * 6, channel="a")
        self.queue.publish("replaced", channel="a", key="w")
        held = self.queue.claim(3)
        held[2].fail("no")
        behind = self.queue.publish("next", channel="a", key="m", on_duplicate="replace")
        self.behind = behind.id or 0
        self.lease = HeldLease(held[0].id, held[0].fence)
        self.other = HeldLease(held[1].id, held[1].fence)
        self.dead = held[2].id
        self.waiting = published[-1].id or 0


class Session:
    """A session as our runner sets it up, that runs a plan step by step."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        for text in (
            "set session transaction isolation level read committed",
            "set session innodb_lock_wait_timeout = 10",
            "set session group_concat_max_len = 16777216",
        ):
            _execute(connection, Statement(text))
        self._answer: Any = None
        self._plan: Plan[Any] | None = None

    def begin(self, plan: Plan[Any]) -> None:
        self._plan = plan
        self._next = next(plan)

    @property
    def next_sql(self) -> str:
        return self._next.sql

    def step(self) -> bool:
        """Runs one statement; False when the plan has ended."""
        assert self._plan
        try:
            self._next = self._plan.send(_execute(self.connection, self._next))
        except StopIteration:
            return False
        return True

    def finish(self) -> None:
        while self.step():
            pass
        self.connection.commit()


Verb = Callable[[MysqlEngine, Setup], Plan[Any]]


def _draft(key: str | None = None, mode: KeyMode | None = None) -> Draft:
    empty = (None, key, None, 0, None, None, None, None, 20, None, mode)
    return Draft(b"x", "default", "a", "", "text/plain", *empty)


def _later(key: str) -> Draft:
    return _draft(key, KeyMode(MINUTE))._replace(delay=MINUTE / 2)


VERBS: dict[str, Verb] = {
    "publish": lambda e, s: e.messages.publish([_draft(), _draft()]),
    "publish key": lambda e, s: e.messages.publish([_draft("k"), _draft("l")]),
    "replace": lambda e, s: e.messages.publish([_draft(key, KeyMode(None)) for key in "wkmn"]),
    "debounce": lambda e, s: e.messages.publish([_later("w")]),
    "claim": lambda e, s: e.claims.claim(("default",), 10, MINUTE, "w"),
    "claim by kind": lambda e, s: e.claims.claim(("default",), 10, MINUTE, "w", ("",)),
    "claim other kind": lambda e, s: e.claims.claim(("default",), 10, MINUTE, "w", ("b", "c")),
    "complete": lambda e, s: e.leases.complete([s.lease, s.other]),
    "defer": lambda e, s: e.leases.defer([Deferral(*s.lease, None, None, True, *[None] * 5)]),
    "fail": lambda e, s: e.leases.fail([Failure(*s.lease, "no", None, None)]),
    "extend": lambda e, s: e.leases.extend(
        [Extension(*s.other, MINUTE), Extension(*s.lease, MINUTE)]
    ),
    "give back": lambda e, s: e.leases.give_back([Return(*s.lease, None)]),
    "cancel": lambda e, s: e.messages.cancel([s.waiting, s.lease.id, s.behind]),
    "policy": lambda e, s: e.channels.set_policies(
        "default", {"a": Policy(concurrency=1), "b": Policy()}
    ),
    "pause": lambda e, s: e.channels.pause("default", ["a"], True),
    "remove": lambda e, s: e.channels.remove("default", ["a"]),
    "redrive": lambda e, s: e.dead_letters.redrive([s.dead], None, timedelta(0)),
    "discard": lambda e, s: e.dead_letters.discard([s.dead]),
    "upkeep": lambda e, s: e.maintenance.upkeep(),
    "history": lambda e, s: e.inspection.history_since("0.0", 100),
}
# Nobody waits for an open publish, and a publish waits for nobody, except for the same key.
FREE = {"publish"}


@pytest.fixture(scope="module")
def setup(mariadb: Any) -> Iterator[Setup]:
    # Not durable, for speed: nothing is killed here.
    with EmbeddedMariaDB(settings={"innodb_flush_log_at_trx_commit": 0}) as server:
        setup = Setup(server.create_database("pairs"))
        yield setup
        setup.close()


def _cuts(first: str, setup: Setup) -> int:
    """How many statements the verb runs when it is alone."""
    setup.set_up()
    session = setup.sessions[0]
    session.begin(VERBS[first](MysqlEngine(clock=setup.clock), setup))
    count = 1
    while session.step():
        count += 1
    session.connection.rollback()
    return count


@pytest.mark.repeats("pairs of verbs on PostgreSQL are in make test")
@pytest.mark.timeout(1800 if EXHAUSTIVE else 240)
@pytest.mark.parametrize("first", VERBS)
def test_pairs(first: str, setup: Setup) -> None:
    statements = _cuts(first, setup)
    for second in VERBS:
        cuts = range(1, statements + 1) if EXHAUSTIVE else (statements,)
        for cut in cuts:
            for ending in ("commit", "rollback") if EXHAUSTIVE else ("commit",):
                _run_pair(setup, first, second, cut, ending)


def _run_pair(setup: Setup, first: str, second: str, cut: int, ending: str) -> None:
    case = f"{first} stopped after {cut}, {second}, then {ending}"
    setup.set_up()
    setup.now += 2 * MINUTE  # the leases have run out, for upkeep
    one, two = setup.sessions
    failed: list[BaseException] = []
    one.begin(VERBS[first](MysqlEngine(clock=setup.clock), setup))
    going = all(one.step() for _ in range(cut))

    def run() -> None:
        try:
            two.begin(VERBS[second](MysqlEngine(clock=setup.clock), setup))
            two.finish()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(MOMENT)
    if thread.is_alive() and FREE & {first, second}:
        thread.join(5)
        assert not thread.is_alive(), f"{case}: it waits"
    if ending == "rollback":
        one.connection.rollback()
    elif going:
        one.finish()
    else:
        one.connection.commit()
    thread.join(20)
    assert not thread.is_alive(), f"{case}: it hangs"
    assert not failed, f"{case}: {failed}"
    assert violations(setup.observer, "laneway") == [], case
