"""claim: it remembers where the live part of its tables begins (the floors)."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from laneway.engines.fairness import Limited, LimitedClaims, LimitSteps, LimitWaits
from laneway.model import ClaimStatus
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Taken

from .base import PostgresqlSql

_QUANTUM = 10
# Seconds. The floors are exact; a full scan is only needed when a clock was set back. It is rare
# because an old snapshot makes it expensive.
_FULL_SCAN_EVERY = 60.0
# Between two looks at a queue that is new to claims by kind: at first there are none.
_SETTLE_EVERY = 1.0
_SETTLE_SOON = 5.0

_Whose = tuple[tuple[str, ...], tuple[str, ...] | None]
"""Queues and kinds of a claim."""


class PostgresqlClaims:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql
        # Floors only save work: an older one, or none, gives the same result.
        self._floors: dict[_Whose, str] = {}
        self._full_scan_at: dict[_Whose, float] = {}
        # When to ask again whether all that waits in these queues is found by its kind.
        self._by_kind_at: dict[tuple[str, ...], float | None] = {}
        self._by_kind_since: dict[tuple[str, ...], float] = {}
        self._limited = LimitedClaims()
        self._life: int | None = None

    def _note_life(self, life: int) -> None:
        """In another life of the server, what this client remembers of its tables may not be true:
        it may have lost what was committed last. The database ignores floors of another life by
        itself."""
        if life != self._life:
            self._life = life
            self._floors.clear()
            self._by_kind_at.clear()
            self._by_kind_since.clear()

    def claim(
        self,
        queues: tuple[str, ...],
        limit: int,
        lease: timedelta,
        worker: str,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[Taken]:
        if kinds is not None:
            yield from self._by_kind(queues)
        claim = partial(self._claim, queues, limit, lease, worker, kinds)
        if queues not in self._limited.known:
            taken = yield from claim()
            if not taken.limited and all(row[Column.HEADERS] is None for row in taken.rows):
                return taken  # headers name the limits: whoever has none goes no further
            claim = partial(_answered, taken)
        wanted = None if kinds is None else list(kinds)
        start = partial(self._start_limited, list(queues), wanted, limit, lease, worker)
        steps = LimitSteps(claim, start, self._admit, self._sweep_limited)
        return (yield from self._limited.claim(queues, steps))

    def _claim(
        self,
        queues: tuple[str, ...],
        limit: int,
        lease: timedelta,
        worker: str,
        kinds: tuple[str, ...] | None,
    ) -> Plan[Taken]:
        whose = (queues, kinds)
        wanted = None if kinds is None else list(kinds)
        floors = self._floors_of(whose)
        claim = self._sql.statement_now(
            "claim", list(queues), limit, lease, worker, _QUANTUM, floors, wanted
        )
        rows = yield claim._replace(primary=True)
        answer, claimed_at, until, look_again, floors, limited, life = json.loads(rows[-1][-1])
        self._note_life(life)
        self._floors[whose] = floors
        return Taken(
            rows[:-1],
            ClaimStatus(answer),
            None if look_again is None else timedelta(seconds=look_again),
            _time(claimed_at),
            _time(until),
            limited=limited is not None,
        )

    def _admit(self, found: Sequence[Limited], taken: Taken) -> Plan[set[int]]:
        columns = (list(column) for column in zip(*found, strict=True))
        return {row[0] for row in (yield self._sql.statement_now("admit", *columns))}

    def _sweep_limited(self, found: Sequence[Limited]) -> Plan[None]:
        yield self._sql.statement_now(
            "sweep_limited", [x.id for x in found], [x.limits for x in found]
        )

    def _start_limited(
        self,
        queues: list[str],
        kinds: list[str] | None,
        limit: int,
        lease: timedelta,
        worker: str,
        among: Sequence[Limited],
    ) -> Plan[tuple[Taken, LimitWaits]]:
        asked = queues, kinds, limit, lease, worker
        *rows, last = yield self._sql.statement_now("start_limited", *asked)
        released, waiting, claimed_at, until, again = json.loads(last[-1])
        status = ClaimStatus.GOT if rows else ClaimStatus.BLOCKED
        taken = Taken(rows, status, timedelta(0), _time(claimed_at), _time(until))
        wait = None if again is None else timedelta(seconds=again)
        return taken, LimitWaits(released, waiting, wait)

    def _by_kind(self, queues: tuple[str, ...]) -> Plan[None]:
        """Makes the queues ready for claims by kind; until then asks again from time to time."""
        now = time.monotonic()
        at = self._by_kind_at.get(queues, 0.0)
        if at is None or now < at:
            return
        rows = yield self._sql.statement_now("by_kind", list(queues))
        since = self._by_kind_since.setdefault(queues, now)
        again = now if now < since + _SETTLE_SOON else now + _SETTLE_EVERY
        self._by_kind_at[queues] = None if rows[0][0] else again

    def _floors_of(self, whose: _Whose) -> str | None:
        """None once a minute: a full scan finds messages that a clock set back had hidden."""
        now = time.monotonic()
        if now < self._full_scan_at.get(whose, 0):
            return self._floors.get(whose)
        self._full_scan_at[whose] = now + _FULL_SCAN_EVERY
        return None

    def notify_channel(self) -> Plan[str | None]:
        rows = yield self._sql.statement("notify_channel")
        return str(rows[0][0])

    def sleep(
        self,
        queues: tuple[str, ...],
        worker: str,
        length: timedelta | None,
        kinds: tuple[str, ...] | None = None,
    ) -> Plan[None]:
        wanted = None if kinds is None else list(kinds)
        yield self._sql.statement_now("sleep", list(queues), worker, length, wanted)


def _answered(taken: Taken) -> Plan[Taken]:
    yield from ()
    return taken


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
