"""Limits that adapt and breakers: PostgreSQL draws the same conclusions as MySQL and SQLite, whose
rules are in Python; and those rules are what the docs say."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.sql import SQL, Identifier

from laneway import Queue
from laneway.dev.embedded import EmbeddedPostgres
from laneway.engines.times import micros, moment
from laneway.limits import Adapt, Breaker, EndedAttempt, LimitControl
from tests.place import fresh_schema

SECOND = 1_000_000
BEGIN = micros(datetime(2030, 1, 1, tzinfo=UTC))


def _rounds(control: LimitControl, rng: random.Random) -> int:
    return max(0, control.round - rng.choice((0, 0, 0, 1, 2)))


def _step(
    control: LimitControl, now: int, rng: random.Random
) -> tuple[list[EndedAttempt], list[int]]:
    """What may have ended behind it, and the rounds of what runs on."""
    count = rng.randint(1, 6)
    outcomes = rng.choice(((1,), (1, 1, 2), (1, 2, 3, 5, None), (4, 1), (2, 3)))
    gone = []
    for _ in range(count):
        outcome = rng.choice(outcomes)
        at = None if outcome is None else now - rng.randint(0, 2 * SECOND)
        gone.append(EndedAttempt(_rounds(control, rng), outcome, at))
    return gone, [_rounds(control, rng) for _ in range(rng.randint(0, 5))]


class OnPostgres:
    """The same limit in the database."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection

    def end(self, gone: list[EndedAttempt], left: list[int]) -> LimitControl:
        run = self._connection.execute
        run("delete from limit_lease")
        for number, round in enumerate(left):
            run(
                "insert into limit_lease (name, message_id, fence, round) values ('x', %s, 1, %s)",
                (number, round),
            )
        run(
            "select control_limit_v1('x', %s::bigint[], %s::smallint[], %s::timestamptz[])",
            (
                [one.round for one in gone],
                [one.outcome for one in gone],
                [moment(one.ended_at) for one in gone],
            ),
        )
        return self.control()

    def control(self) -> LimitControl:
        row = self._connection.execute(
            "select concurrency, set_concurrency, rest_until, adapt_min, adapt_max, adapted, "
            "successes, breaker_failures, breaker_window, breaker_minimum, breaker_pause, "
            "opened_at, open_until, null, round, adapt_round, breaker_round, "
            "slots, slots_ended, slots_failed from shared_limit where name = 'x'"
        ).fetchone()
        assert row is not None
        *columns, slots, ended, failed = (
            micros(value) if isinstance(value, datetime | timedelta) else value for value in row
        )
        found = LimitControl(*columns)  # type: ignore[arg-type]
        if slots is not None:
            kept = list(zip(slots, ended, failed, strict=True))  # type: ignore[call-overload]
            found.recent = json.dumps(kept)
        return found


def test_postgresql_concludes_what_the_others_do(server: EmbeddedPostgres) -> None:
    schema = fresh_schema()
    with Queue(server.url(), schema=schema, upkeep_every=None) as queue:
        queue.install()
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(SQL("set search_path = {}").format(Identifier(schema)))
            database = OnPostgres(connection)
            opened = halved = 0
            for seed in range(12):
                rng = random.Random(seed)
                least = rng.randint(1, 4)
                adapt = rng.choice((None, Adapt(least, least + rng.randint(0, 20))))
                breaker = Breaker(
                    rng.choice((0.2, 0.5, 1)), rng.choice((1, 7.5)), rng.randint(1, 9), 3
                )
                number = rng.choice((None, 1, 8))
                queue.limits["x"].remove()
                chosen = rng.choice((None, breaker, breaker))
                queue.limits["x"].set(concurrency=number, rate=5, adapt=adapt, breaker=chosen)
                control = LimitControl()
                control.set(number, adapt, chosen)
                now = BEGIN
                for _ in range(25):
                    now += rng.randint(0, 4 * SECOND)
                    gone, left = _step(control, now, rng)
                    before = replace(control)
                    control.end(gone, left)
                    assert database.end(gone, left) == control, (seed, before, gone, left)
                    opened += control.opened_at is not None
                    halved += control.adapt_round > before.adapt_round
            assert opened > 20 and halved > 20
