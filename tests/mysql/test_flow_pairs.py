"""Two sessions on one flow: one stops after its statements, the other runs, the first one goes on.

Three verbs stop before their commit. LANEWAY_EXHAUSTIVE=1 (`make pairs-mysql`): all do, after every
statement, and are rolled back and killed too.
"""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pymysql
import pytest

from laneway import Queue
from laneway.dev.embedded import EmbeddedMariaDB
from laneway.engines.mysql import MysqlEngine
from laneway.flow import FlowDraft, NodeDraft
from laneway.model import Deferral, Failure, HeldLease
from laneway.plan import Plan
from tests.flows.sound import flow_violations
from tests.interleavings.flow_world import DEAD, EXPIRED, IDLE, NODES, ONE, TWO
from tests.model.mysql import TABLES, connect
from tests.mysql.invariants import violations
from tests.mysql.test_pairs import EXHAUSTIVE, MINUTE, MOMENT, START, Session, Setup, _draft

HOUR = 60 * MINUTE
NO_DELAY = timedelta(0)


def _node(number: int) -> NodeDraft:
    node = NODES[number]
    draft = _draft()._replace(delay=HOUR if node.delay else None)
    return NodeDraft(draft, [-parent for parent in node.after], node.when)  # type: ignore[arg-type]


class FlowSetup(Setup):
    """The flow of tests/interleavings/flow_world.py."""

    def set_up(self) -> None:
        with self.observer.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"delete from `laneway_{table}`")  # noqa: S608
        self.now = START
        database = self.queue.database
        nodes = [_node(number) for number in range(len(NODES))]
        published = database.run(
            database.engine.flows.publish_flow(FlowDraft("default", "f", HOUR), nodes), atomic=True
        )
        self.flow, self.ids = published.id or 0, published.ids
        claimed = [*self.queue.claim(3, lease=HOUR), *self.queue.claim(1, lease=MINUTE)]
        self.fences = {message.id: message.fence for message in claimed}
        assert sorted(self.fences) == [self.ids[n - 1] for n in (ONE, TWO, DEAD, EXPIRED)]
        self.queue.fail([message for message in claimed if message.id == self.ids[DEAD - 1]])
        database.run(self.adding(MysqlEngine(clock=self.clock)), atomic=True)

    def lease(self, number: int) -> HeldLease:  # type: ignore[override]
        id = self.ids[number - 1]
        return HeldLease(id, self.fences[id])

    def adding(self, engine: MysqlEngine) -> Plan[Any]:
        nodes = [
            NodeDraft(_draft(), [], "completed"),
            NodeDraft(_draft(), [-1, self.ids[1]], "completed"),
        ]
        return engine.flows.stage_nodes(self.lease(ONE), nodes)

    def sound(self) -> list[str]:
        self.observer.query("set transaction isolation level repeatable read")
        self.observer.begin()
        try:
            return flow_violations(self._columns, "mysql")
        finally:
            self.observer.commit()

    def _columns(self, columns: str, table: str) -> Any:
        return self._fetch(f"select {columns} from laneway_{table}")  # noqa: S608

    def _fetch(self, query: str) -> Any:
        with self.observer.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def drain(self) -> None:
        """Whatever happened, it goes on to its end."""
        for _ in range(40):
            self.now += 2 * HOUR
            # Time was turned back, and only once a minute an engine looks for older leases.
            self.queue.database.engine.maintenance.upkeep.__self__._full_lease_scan_at = 0.0  # type: ignore[attr-defined]
            self.queue.upkeep()
            self.queue.dead_letters.redrive(
                [row[0] for row in self._fetch("select id from laneway_dead")]
            )
            if messages := self.queue.claim(4, lease=MINUTE):
                self.queue.complete(messages)
            elif not self._fetch("select 1 from laneway_message"):
                break
        self.queue.upkeep()
        assert self.sound() == []
        assert self._fetch("select id from laneway_flow where ended_at is null") == ()
        assert self._fetch("select id from laneway_flow_held") == ()
        assert self._fetch("select id from laneway_flow_added") == ()


def _again(engine: MysqlEngine, setup: FlowSetup) -> Plan[Any]:
    return engine.flows.publish_flow(FlowDraft("default", "f", HOUR), [_node(0), _node(1)])


def _defer(setup: FlowSetup) -> list[Deferral]:
    return [Deferral(*setup.lease(ONE), None, None, True, *[None] * 5)]


FlowVerb = Callable[[MysqlEngine, FlowSetup], Plan[Any]]
FLOW_VERBS: dict[str, FlowVerb] = {
    "complete one": lambda e, s: e.leases.complete([s.lease(ONE)]),
    "complete two": lambda e, s: e.leases.complete([s.lease(TWO)]),
    "complete both": lambda e, s: e.leases.complete([s.lease(ONE), s.lease(TWO)]),
    "complete all": lambda e, s: e.leases.complete([s.lease(EXPIRED), s.lease(TWO), s.lease(ONE)]),
    "fail one": lambda e, s: e.leases.fail([Failure(*s.lease(ONE), "no", None, None)]),
    "defer one": lambda e, s: e.leases.defer(_defer(s)),
    "cancel idle": lambda e, s: e.messages.cancel([s.ids[IDLE - 1]]),
    "redrive dead": lambda e, s: e.dead_letters.redrive([s.ids[DEAD - 1]], None, NO_DELAY),
    "discard dead": lambda e, s: e.dead_letters.discard([s.ids[DEAD - 1]]),
    "add to one": lambda e, s: s.adding(e),
    "cancel flow": lambda e, s: e.flows.cancel_flow(s.flow),
    "publish again": _again,
    "upkeep": lambda e, s: e.maintenance.upkeep(),
    "claim": lambda e, s: e.claims.claim(("default",), 10, MINUTE, "w"),
}


# One that decides children of several parents, one that adds nodes, one that ends all of a flow.
FIRST = list(FLOW_VERBS) if EXHAUSTIVE else ["complete all", "add to one", "cancel flow"]


@pytest.fixture(scope="module")
def setup(mariadb: Any) -> Iterator[FlowSetup]:
    # Not durable, for speed: no server is killed here.
    with EmbeddedMariaDB(settings={"innodb_flush_log_at_trx_commit": 0}) as server:
        setup = FlowSetup(server.create_database("flow pairs"))
        yield setup
        setup.close()


@pytest.mark.repeats("pairs of verbs on flows on PostgreSQL are in make test")
@pytest.mark.timeout(3600 if EXHAUSTIVE else 240)
@pytest.mark.parametrize("first", FIRST)
def test_pairs(first: str, setup: FlowSetup) -> None:
    statements = _statements(first, setup)
    for second in FLOW_VERBS:
        cuts = range(1, statements + 1) if EXHAUSTIVE else (statements,)
        for cut in cuts:
            for ending in ("commit", "rollback", "kill") if EXHAUSTIVE else ("commit",):
                _run_pair(setup, first, second, cut, ending)


def test_many_nodes_that_become_the_same_wait_for_no_other_node(mariadb: EmbeddedMariaDB) -> None:
    """Their statement lists ids: the server must not read a small table from end to end, as it
    does without a hint, and at a caller's level it would wait for what it reads."""
    url = mariadb.create_database("alike")
    with Queue(url, upkeep_every=None) as queue, connect(url) as mine, connect(url) as other:
        queue.install()
        with queue.flow("others") as flow:
            flow.add("x", after=flow.add("y", delay=MINUTE))
        with queue.flow("alike") as flow:
            first = flow.add("first")
            for number in range(12):
                flow.add(number, after=first)
        (message,) = queue.claim()
        with other.cursor() as cursor:
            cursor.execute("select id from laneway_flow_node where state = 'live' order by id")
            locked = cursor.fetchall()[0]
            assert locked != (message.id,)
            cursor.execute("select 1 from laneway_flow_node where id = %s for update", locked)
            mine.query("set session innodb_lock_wait_timeout = 2")
            message.complete(connection=mine)
            mine.commit()
            cursor.execute("rollback")
        assert len(queue.claim(20)) == 12


def _statements(first: str, setup: FlowSetup) -> int:
    setup.set_up()
    session = setup.sessions[0]
    session.begin(FLOW_VERBS[first](MysqlEngine(clock=setup.clock), setup))
    count = 1
    while session.step():
        count += 1
    session.connection.rollback()
    return count


def _run_pair(setup: FlowSetup, first: str, second: str, cut: int, ending: str) -> None:
    case = f"{first} stopped after {cut}, {second}, then {ending}"
    setup.set_up()
    setup.now += 2 * MINUTE  # one lease has run out, for upkeep
    one, two = setup.sessions
    failed: list[BaseException] = []
    one.begin(FLOW_VERBS[first](MysqlEngine(clock=setup.clock), setup))
    going = all(one.step() for _ in range(cut))

    def run() -> None:
        try:
            _repeated(two, FLOW_VERBS[second], setup)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(MOMENT)
    try:
        if ending == "kill":
            one.connection._force_close()
            setup.sessions = Session(connect(setup.url)), two
        elif ending == "rollback":
            one.connection.rollback()
        elif going:
            one.finish()
        else:
            one.connection.commit()
    except pymysql.err.OperationalError as error:
        # The server ended this one of the two; our runner would begin it anew.
        if error.args[0] != 1213:
            raise
        one.connection.rollback()
        _repeated(one, FLOW_VERBS[first], setup)
    thread.join(20)
    assert not thread.is_alive(), f"{case}: it hangs"
    assert not failed, f"{case}: {failed}"
    assert setup.sound() == [], case
    assert violations(setup.observer, "laneway") == [], case
    setup.drain()


def _repeated(session: Session, verb: FlowVerb, setup: FlowSetup) -> None:
    """As our runner does after a deadlock."""
    for _ in range(3):
        session.begin(verb(MysqlEngine(clock=setup.clock), setup))
        try:
            return session.finish()
        except pymysql.err.OperationalError as error:
            if error.args[0] != 1213:
                raise
            session.connection.rollback()
    raise AssertionError("a deadlock each time")
