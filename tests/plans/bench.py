"""What a verb touches, exactly: the server's own counters of the transaction it runs in.

pg_stat_get_xact_* count scans, rows and pages by table and index, without the catalogs' noise that
EXPLAIN's buffers have in them.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import RawCursor

from laneway.engines.postgresql import PostgresqlEngine
from laneway.model import Deferral, Draft, Extension, Failure, HeldLease, Policy, Return
from laneway.plan import Plan, Row

T = TypeVar("T")

SIZE = 1_000_000 if os.environ.get("LANEWAY_EXHAUSTIVE") == "1" else 100_000
CHANNELS = 1000
BATCH = 100
REPEATS = 5
LEASE = timedelta(hours=1)
# Hold at most about a thousand rows at any size of the queue, and have no index to go by.
SMALL = ("dead_count", "stray")
HOT = ("message", "wake", "token", "lease", "stray", "channel", "dedupe", "dead", "history")

QUIET = """
do $$ declare r record; begin
    for r in select c.oid::regclass as name from pg_class c
        where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'r' loop
        execute format('alter table %s set (autovacuum_enabled = false)', r.name);
    end loop;
end $$
"""

_COUNTERS = """
select c.relname, c.relkind = 'i' as is_index, pg_stat_get_xact_numscans(c.oid) as scans,
    pg_stat_get_xact_tuples_returned(c.oid) as returned,
    pg_stat_get_xact_tuples_fetched(c.oid) as fetched,
    pg_stat_get_xact_blocks_fetched(c.oid) as blocks
from pg_class c
where c.relnamespace = to_regnamespace('laneway') and c.relkind in ('r', 'i')
"""


@dataclass(frozen=True)
class Cost:
    """Per message: rows read from tables, entries read from indexes, pages looked at."""

    rows: float
    entries: float
    buffers: float
    scanned: tuple[str, ...]
    """Hot tables that were read from end to end."""


class Bench:
    """One session: calls verbs through their plans, one transaction each."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url)
        self.connection.execute("set jit = off")
        self.connection.commit()
        self.engine = PostgresqlEngine()
        self.last = Cost(0, 0, 0, ())

    def close(self) -> None:
        self.connection.close()

    def call(self, plan: Plan[T], messages: int = BATCH) -> T:
        """Runs the verb, commits it, and remembers what it cost."""
        before = self._counters()
        try:
            statement = next(plan)
            while True:
                statement = plan.send(self._execute(statement.sql, statement.params))
        except StopIteration as stop:
            self.last = self._cost(before, messages)
            self.connection.commit()
            return stop.value  # type: ignore[no-any-return]

    def _execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        with RawCursor(self.connection) as cursor:
            cursor.execute(sql.encode(), params, prepare=True)
            return cursor.fetchall()

    def _counters(self) -> dict[tuple[str, bool], tuple[int, ...]]:
        """Of what is not yet sent to the shared statistics: that is more than this transaction."""
        rows = self.connection.execute(_COUNTERS.encode()).fetchall()
        return {
            (row[0], row[1]): row[2:]
            for row in rows
            if row[0].startswith(HOT) and not row[0].startswith(SMALL)
        }

    def _cost(self, before: dict[tuple[str, bool], tuple[int, ...]], messages: int) -> Cost:
        tables, indexes, pages, scanned = 0, 0, 0, []
        for (name, is_index), now in self._counters().items():
            past = before.get((name, is_index), (0, 0, 0, 0))
            scans, returned, fetched, blocks = (a - b for a, b in zip(now, past, strict=True))
            pages += blocks
            if is_index:
                indexes += returned
                continue
            tables += returned + fetched
            if scans:
                scanned.append(name)
        return Cost(tables / messages, indexes / messages, pages / messages, tuple(scanned))

    # The verbs, a batch each.

    def publish(self, count: int = BATCH, first: int = 0, **options: Any) -> list[int]:
        return self.publish_drafts([draft(first + n, **options) for n in range(count)])

    def publish_drafts(self, drafts: Sequence[Draft]) -> list[int]:
        answers = self.call(self.engine.messages.publish(drafts), len(drafts))
        return [a.id for a in answers if a.id is not None]

    def claim(self, count: int = BATCH, queue: str = "plans") -> list[HeldLease]:
        """The batch is full when it is there; what the last call cost is remembered."""
        for _ in range(1000):
            taken = self.call(self.engine.claims.claim((queue,), count, LEASE, "bench"), count)
            if len(taken.rows) == count:
                return [HeldLease(row[0], row[1]) for row in taken.rows]
            if taken.rows:
                rest = [Return(row[0], row[1], None) for row in taken.rows]
                self.call(self.engine.leases.give_back(rest))
        raise AssertionError(f"no {count} messages in {queue}")


def draft(number: int, *, queue: str = "plans", key: str | None = None, **times: Any) -> Draft:
    return Draft(
        b"x" * 100,
        queue,
        f"c{number % CHANNELS}",
        "",
        "application/octet-stream",
        None,
        key,
        None,
        0,
        times.get("delay"),
        None,
        times.get("expires_in"),
        None,
        20,
    )


def deferral(held: HeldLease, error: str | None = None) -> Deferral:
    hour = timedelta(hours=1)
    return Deferral(held.id, held.fence, hour, None, True, None, None, None, None, error)


def _verbs(bench: Bench) -> dict[str, Callable[[], None]]:
    """Each prepares what it needs, and ends with the call that is measured."""
    engine = bench.engine

    def complete() -> None:
        bench.call(engine.leases.complete(bench.claim()))

    def defer() -> None:
        bench.call(engine.leases.defer([deferral(held) for held in bench.claim()]))

    def retry() -> None:
        bench.call(engine.leases.defer([deferral(held, "no") for held in bench.claim()]))

    def fail() -> None:
        bench.call(engine.leases.fail([Failure(*held, "no", None, None) for held in bench.claim()]))

    def extend() -> None:
        bench.call(engine.leases.extend([Extension(*held, LEASE) for held in bench.claim()]))

    def hold() -> None:
        bench.call(engine.leases.hold(bench.claim(), LEASE))

    def give_back() -> None:
        bench.call(engine.leases.give_back([Return(*held, None) for held in bench.claim()]))

    def complete_stale() -> None:
        held = bench.claim()
        bench.call(engine.leases.complete(held))
        bench.call(engine.leases.complete(held))

    def publish_keyed() -> None:
        bench.publish_drafts([draft(n, key=f"{os.urandom(8).hex()}") for n in range(BATCH)])

    def complete_keyed() -> None:
        keyed = [draft(n, queue="keyed", key=f"{os.urandom(8).hex()}") for n in range(BATCH)]
        bench.publish_drafts(keyed)
        bench.call(engine.leases.complete(bench.claim(queue="keyed")))

    def cancel() -> None:
        bench.call(engine.messages.cancel(bench.publish(delay=timedelta(days=1))))

    def dead() -> list[int]:
        held = bench.claim()
        bench.call(engine.leases.fail([Failure(*one, "no", None, None) for one in held]))
        return [one.id for one in held]

    def redrive() -> None:
        bench.call(engine.dead_letters.redrive(dead(), None, timedelta(days=1)))

    def discard() -> None:
        bench.call(engine.dead_letters.discard(dead()))

    def claim_limited() -> None:
        bench.call(engine.channels.set_policies("limited", {"one": Policy(concurrency=10**6)}))
        one = draft(0, queue="limited")._replace(channel="one")
        bench.publish_drafts([one] * BATCH)
        held = bench.claim(queue="limited")
        cost = bench.last
        bench.call(engine.leases.complete(held))
        bench.last = cost

    def upkeep_expired() -> None:
        """The leases of this batch end now: only they are found."""
        held = bench.claim()
        bench.connection.execute(
            "update laneway.lease set until = clock_timestamp() where message_id = any(%s)",
            [[one.id for one in held]],
        )
        bench.connection.commit()
        bench.call(maintenance())

    def upkeep_lapsed() -> None:
        bench.publish(expires_in=timedelta(0))
        bench.call(maintenance())

    def maintenance() -> Plan[None]:
        """Upkeep without its counting, which tests/looks measures."""
        yield next(engine.maintenance.upkeep())

    def claim(count: int) -> None:
        # The first ones take in the news of what was published, which one in eight does; the last
        # is what a claim costs.
        for _ in range(10):
            bench.claim(count)

    def claim_nothing() -> None:
        bench.call(engine.claims.claim(("nobody",), BATCH, LEASE, "bench"), 1)

    return {
        "publish": lambda: void(bench.publish()),
        "publish one": lambda: void(bench.publish(1)),
        "publish with keys": publish_keyed,
        "claim": lambda: claim(BATCH),
        "claim one": lambda: claim(1),
        "claim of a limited channel": claim_limited,
        "claim of nothing": claim_nothing,
        "complete": complete,
        "complete with keys": complete_keyed,
        "complete, stale": complete_stale,
        "defer": defer,
        "defer with an error": retry,
        "fail": fail,
        "extend": extend,
        "hold": hold,
        "give back": give_back,
        "cancel": cancel,
        "redrive": redrive,
        "discard": discard,
        "upkeep of expired leases": upkeep_expired,
        "upkeep of lapsed messages": upkeep_lapsed,
        "upkeep of nothing": lambda: void(bench.call(maintenance(), 1)),
    }


def void(_: object) -> None:
    """A call whose answer does not matter."""


def measure(bench: Bench, repeats: int = REPEATS) -> dict[str, Cost]:
    """What each verb costs at its cheapest: a page that was split by chance is not its fault."""
    costs = {}
    for name, verb in _verbs(bench).items():
        found = []
        for _ in range(repeats):
            verb()
            found.append(bench.last)
        costs[name] = Cost(
            min(c.rows for c in found),
            min(c.entries for c in found),
            min(c.buffers for c in found),
            tuple(sorted({name for c in found for name in c.scanned})),
        )
    return costs


def load(bench: Bench) -> None:
    """A busy queue: a backlog over many channels, leases, keys, dead letters and history."""
    for first in range(0, SIZE, 10_000):
        bench.publish(10_000, first)
    keyed = [draft(n, key=f"key {n}") for n in range(SIZE // 20)]
    for first in range(0, len(keyed), 5000):
        bench.publish_drafts(keyed[first : first + 5000])
    for number in range(0, SIZE // 4, 2500):
        held = bench.claim(2500)
        if number % 5000 == 0:
            bench.call(bench.engine.leases.complete(held[:2000]))
            bench.call(
                bench.engine.leases.fail([Failure(*one, "no", None, None) for one in held[2000:]])
            )
    bench.publish(SIZE // 10, 0, delay=timedelta(days=1))
