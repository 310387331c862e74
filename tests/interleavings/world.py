"""One channel with a message in every state, the ledger of what happened to them, and the verbs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg.pq import TransactionStatus

from tests.interleavings.invariants import over_limit, violations
from tests.interleavings.stepper import Session, Stepper

Connection = psycopg.Connection[Any]

_EMPTY = """
delete from laneway.message; delete from laneway.wake; delete from laneway.token;
delete from laneway.lease; delete from laneway.stray; delete from laneway.dedupe;
delete from laneway.dead; delete from laneway.dead_count;
delete from laneway.dead_total; delete from laneway.history;
delete from laneway.channel; delete from laneway.pause; delete from laneway.kind_queue;
delete from laneway.flow; delete from laneway.flow_node; delete from laneway.flow_edge;
delete from laneway.flow_held; delete from laneway.flow_count;
delete from laneway.shared_limit; delete from laneway.limit_lease; delete from laneway.limit_lane;
delete from laneway.limit_wait; delete from laneway.limit_queue;
delete from laneway.limit_clock
"""
_PUBLISH = """
select id, status from laneway.publish_v1(
    array['x'::bytea], array['q'], array[%(channel)s], p_key => %(key)s::text[],
    p_priority => array[%(priority)s::smallint], p_expires_in => %(expires_in)s::interval[])
"""
_CLAIM = """
select id, fence, answer, turn_floor::text, wake_floor::text, open_xids, open_turns::text[],
    open_wakes::text[]
from laneway.claim_v1(
    array['q'], %(limit)s, %(lease)s::interval, 'tester', p_turn_floor => %(turn)s::timestamptz,
    p_wake_floor => %(wake)s::timestamptz, p_open_xids => %(open_xids)s::bigint[],
    p_open_turns => %(open_turns)s::text[]::timestamptz[],
    p_open_wakes => %(open_wakes)s::text[]::timestamptz[], p_kinds => %(kinds)s::text[])
"""
_SET_POLICY = """
select laneway.set_policy_v1(
    'q', array[%(channel)s], array[%(limit)s::bigint], array[%(rate)s::float8],
    array[%(burst)s::bigint], array[%(backlog)s::bigint], array[1.0::float8])
"""
_DEFER = """
select status from laneway.defer_v1(
    %(ids)s, %(fences)s, array['0'::interval], '{}', '{true}', '{}', '{}', '{}', '{}', '{}')
"""


@dataclass
class Floors:
    """What a client remembers from claim to claim."""

    turn: str | None = None
    wake: str | None = None
    open_xids: list[int] = field(default_factory=list)
    open_turns: list[str] = field(default_factory=list)
    open_wakes: list[str] = field(default_factory=list)


class World:
    """The channel 'a' of the queue 'q'.

    ``held`` is leased by somebody, ``expired`` was leased and the lease ran out, ``idle`` waits
    (twice, in two priorities), ``keyed`` is leased and has the key 'k', ``past`` waits and its
    time is over, ``dead`` is a dead letter.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.stepper = Stepper(url)
        self.own = psycopg.connect(url, autocommit=True)
        self.published: set[int] = set()
        self.floors = Floors()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stepper.close()
        self.own.close()

    def clear(self) -> None:
        self.own.execute(_EMPTY)
        self.published.clear()
        self.floors = Floors()

    def reset(self, limit: int | None = None) -> None:
        self.clear()
        if limit is not None:
            self.set_policy(self.own, limit)
        self.dead = self.publish(self.own)
        ((_, self.dead_fence),) = self.claim(self.own, limit=1)
        self.settle(self.own, "fail", self.dead, self.dead_fence)
        self.past = self.publish(self.own, expires_in="1 microsecond")
        self.expired = self.publish(self.own)
        ran_out = self.claim(self.own, limit=1, lease="-1 second")
        self.held = self.publish(self.own)
        self.keyed = self.publish(self.own, key="k")
        self.fences = dict([*ran_out, *self.claim(self.own, limit=2)])
        self.idle = [self.publish(self.own), self.publish(self.own, priority=1)]
        assert set(self.fences) == {self.expired, self.held, self.keyed}

    # The verbs. Each takes the connection to speak on.

    def publish(
        self,
        connection: Connection,
        channel: str = "a",
        key: str | None = None,
        priority: int = 0,
        expires_in: str | None = None,
    ) -> int:
        params = {
            "channel": channel,
            "key": [key] if key else [],
            "priority": priority,
            "expires_in": [expires_in] if expires_in else [],
        }
        id, status = connection.execute(_PUBLISH, params).fetchone() or (0, "")
        if status == "published":
            self.when_committed(connection, lambda: self.published.add(id))
        return int(id)

    def claim(
        self,
        connection: Connection,
        limit: int = 3,
        lease: str = "1 hour",
        kinds: list[str] | None = None,
    ) -> list[tuple[int, int]]:
        if kinds is not None:
            connection.execute("select laneway.by_kind_v1(array['q'])")
            given = {"limit": limit, "lease": lease, "kinds": kinds, **vars(Floors())}
            *rows, _ = connection.execute(_CLAIM, given).fetchall()
            return [(row[0], row[1]) for row in rows]
        given = {"limit": limit, "lease": lease, "kinds": None, **vars(self.floors)}
        *rows, last = connection.execute(_CLAIM, given).fetchall()
        floors = Floors(last[3], last[4], last[5] or [], last[6] or [], last[7] or [])
        self.when_committed(connection, lambda: setattr(self, "floors", floors))
        return [(row[0], row[1]) for row in rows]

    def settle(self, connection: Connection, verb: str, id: int, fence: int | None = None) -> None:
        params = {"ids": [id], "fences": [self.fences[id] if fence is None else fence]}
        connection.execute(_SETTLES[verb], params)

    def set_policy(
        self,
        connection: Connection,
        limit: int | None = None,
        channel: str = "a",
        rate: float | None = None,
        burst: int | None = None,
        backlog: int | None = None,
    ) -> None:
        params = {
            "channel": channel,
            "limit": limit,
            "rate": rate,
            "burst": burst,
            "backlog": backlog,
        }
        connection.execute(_SET_POLICY, params)

    def when_committed(self, connection: Connection, note: Callable[[], object]) -> None:
        """A rolled-back step leaves nothing in the ledger either."""
        if connection is self.own or connection.info.transaction_status is TransactionStatus.IDLE:
            note()
        else:
            self.stepper.notes.setdefault(connection.info.backend_pid, []).append(note)

    @contextmanager
    def sessions(self, count: int) -> Iterator[list[Session]]:
        sessions = [self.stepper.session() for _ in range(count)]
        try:
            yield sessions
        finally:
            for session in sessions:
                self.stepper.give_back(session)

    # The verdict.

    def check(self) -> None:
        broken = violations(self.own, self.published)
        assert not broken, broken

    def drain(self) -> None:
        """Everything that is not dead is delivered, with the floors of the earlier claims."""
        self.own.execute("select laneway.pause_v1('q', array['a'], false)")
        self.own.execute("update laneway.lease set until = clock_timestamp() - interval '1 s'")
        self.own.execute("select laneway.upkeep_v1()")
        self.own.execute("select laneway.upkeep_v1()")  # strays that the first one made clear
        self.check()
        while got := self.claim(self.own):
            broken = over_limit(self.own)
            assert not broken, broken
            ids, fences = zip(*got, strict=True)
            lost = self.own.execute(
                "select id from laneway.complete_v1(%s, %s)", [list(ids), list(fences)]
            ).fetchall()
            assert not lost, lost
        self.check()
        left = self.own.execute("select id, channel from laneway.message").fetchall()
        assert not left, f"never delivered: {left}"


_SETTLES = {
    "complete": "select * from laneway.complete_v1(%(ids)s, %(fences)s)",
    "defer": _DEFER,
    "fail": "select * from laneway.fail_v1(%(ids)s, %(fences)s, '{}', '{}', '{}')",
    "extend": "select * from laneway.extend_v1(%(ids)s, %(fences)s, array['2 hours'::interval])",
    "give_back": "select * from laneway.give_back_v1(%(ids)s, %(fences)s)",
}
