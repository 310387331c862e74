"""Pauses of queues and kinds on MySQL, against a claim that stops after each of its statements."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from laneway.engines.mysql import MysqlEngine
from laneway.plan import Taken
from tests.model.mysql import connect
from tests.mysql.test_pairs import Session, Setup
from tests.stores import Databases

LONGEST = 30.0  # seconds
MINUTE = timedelta(minutes=1)
KINDS = [None, pytest.param("", marks=pytest.mark.repeats("as for a queue, by kind"))]
"""A pause of the whole queue, and of the kind of its messages."""


@pytest.fixture(scope="module")
def one_setup(mariadb: Databases) -> Iterator[Setup]:
    setup = Setup(mariadb.create_database("laneway_pauses"))
    yield setup
    setup.close()


@pytest.fixture
def setup(one_setup: Setup) -> Iterator[Setup]:
    one_setup.set_up()
    one_setup.sessions = Session(connect(one_setup.url)), Session(connect(one_setup.url))
    yield one_setup
    for session in one_setup.sessions:
        session.connection._force_close()
    for kind in (None, ""):
        one_setup.queue.resume(kind=kind)


class Claim:
    """A claim that runs statement by statement."""

    def __init__(self, setup: Setup, session: Session) -> None:
        self.taken: Taken | None = None
        self._session = session
        session.begin(self._plan(MysqlEngine(clock=setup.clock)))

    def _plan(self, engine: MysqlEngine) -> Any:
        self.taken = yield from engine.claims.claim(("default",), 10, MINUTE, "w")

    def run(self, statements: int | None = None) -> int:
        """Returns how many statements it ran; it is not committed."""
        count = 0
        while count != statements:
            count += 1
            if not self._session.step():
                break
        return count

    def commit(self) -> int:
        """Goes on to its end; how many messages it has started."""
        self._session.finish()
        return self.started

    @property
    def started(self) -> int:
        assert self.taken is not None
        return len(self.taken.rows)


class Pausing(threading.Thread):
    """A pause on a connection of its own; it is done when it has committed."""

    def __init__(self, setup: Setup, kind: str | None) -> None:
        super().__init__(daemon=True)
        self._setup, self._kind, self._committed = setup, kind, False
        self.start()

    def run(self) -> None:
        self._setup.queue.pause(kind=self._kind)
        self._committed = True

    def is_done(self) -> bool:
        """Whether it ends by itself; False if it waits for a lock."""
        return not _waits(self._setup, self) and self._committed

    def ends(self) -> bool:
        self.join(LONGEST)
        return self._committed


def _waits(setup: Setup, thread: threading.Thread) -> bool:
    """Whether it comes to wait for a lock, before it ends."""
    deadline = time.monotonic() + LONGEST
    while thread.is_alive():
        assert time.monotonic() < deadline
        with setup.observer.cursor() as cursor:
            cursor.execute(
                "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
            )
            if int(cursor.fetchone()[0]):
                return thread.is_alive()
        thread.join(0.15)  # who looks more often than every 0.1 s is shown the same again
    return False


def _leases(setup: Setup) -> int:
    with setup.observer.cursor() as cursor:
        cursor.execute("select count(*) from laneway_lease")
        return int(cursor.fetchone()[0])


def _statements(setup: Setup) -> int:
    """Of a claim that is alone, which is rolled back."""
    (session, _) = setup.sessions
    count = Claim(setup, session).run()
    session.connection.rollback()
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_when_a_pause_is_committed_nothing_starts_any_more(setup: Setup, kind: str | None) -> None:
    """Wherever a claim is when the pause begins: either the pause waits for its end, or the claim
    starts nothing."""
    waited = []
    for cut in range(1, _statements(setup) + 1):
        setup.set_up()
        before = _leases(setup)
        claim = Claim(setup, setup.sessions[0])
        claim.run(cut)
        pausing = Pausing(setup, kind)
        if pausing.is_done():
            assert claim.commit() == 0, f"after {cut} statements"
            assert _leases(setup) == before
        else:
            waited.append(cut)
            assert claim.commit() > 0
            assert pausing.ends()
        assert len(setup.queue.claim(10)) == 0
        setup.queue.resume(kind=kind)
    # Those that found the fence and no pause hold it up; those before it do not.
    assert waited and waited == list(range(waited[0], waited[-1] + 1)) and waited[0] > 2


def test_a_claim_that_is_rolled_back_lets_the_pause_through(setup: Setup) -> None:
    session, _ = setup.sessions
    claim = Claim(setup, session)
    claim.run()
    pausing = Pausing(setup, None)
    assert not pausing.is_done()
    session.connection.rollback()
    assert pausing.ends()
    assert not setup.queue.claim(10)
    setup.queue.resume()
    assert setup.queue.claim(10)


def test_a_killed_claim_lets_the_pause_through(setup: Setup) -> None:
    session, _ = setup.sessions
    Claim(setup, session).run()
    pausing = Pausing(setup, None)
    assert not pausing.is_done()
    with setup.observer.cursor() as cursor:
        cursor.execute(f"kill {session.connection.thread_id()}")
    assert pausing.ends()
    assert not setup.queue.claim(10)


def test_a_pause_that_is_rolled_back_leaves_nothing(setup: Setup) -> None:
    session, other = setup.sessions
    session.begin(MysqlEngine(clock=setup.clock).queues.pause_queue("default", None, None, "", ""))
    while session.step():
        pass
    claim = Claim(setup, other)
    thread = threading.Thread(target=claim.commit, daemon=True)
    thread.start()
    assert _waits(setup, thread), "until it knows"
    session.connection.rollback()
    thread.join(LONGEST)
    assert claim.started > 0


def test_claims_do_not_wait_for_each_other(setup: Setup) -> None:
    session, other = setup.sessions
    Claim(setup, session).run()
    setup.queue.publish("x", channel="b")
    assert Claim(setup, other).commit() == 1
    session.connection.rollback()


def test_two_pauses_of_the_same_leave_one(setup: Setup) -> None:
    session, _ = setup.sessions
    session.begin(
        MysqlEngine(clock=setup.clock).queues.pause_queue("default", None, None, "ann", "")
    )
    while session.step():
        pass
    pausing = Pausing(setup, None)
    assert not pausing.is_done()
    session.connection.commit()
    assert pausing.ends()
    assert [pause.actor for pause in setup.queue.pauses()] == [""]
