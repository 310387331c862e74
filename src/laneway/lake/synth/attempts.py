"""Simulates attempts of all messages at once: a round is one attempt of each that has not ended.
Rows of history are collected by column and converted to Arrow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from laneway.lake.columns import HISTORY, INSTANT, LIVE

from .messages import (
    BAD_DEPLOY,
    HOPELESS,
    HOUR,
    KINDS,
    LEASE,
    MAX_ATTEMPTS,
    NOISY,
    WORKERS,
    Backlog,
    Floats,
    Ints,
    Messages,
    Window,
)

ABSENT = np.iinfo(np.int64).min
"""Stands for NULL in a column of numbers or times."""

OUTCOMES = (
    "completed",
    "deferred",
    "retried",
    "failed",
    "expired",
    "given_back",
    "cancelled",
    "lapsed",
    "redriven",
    "discarded",
    "stale",
)
CODE = {name: code for code, name in enumerate(OUTCOMES)}
TERMINAL = [CODE[name] for name in ("completed", "cancelled", "lapsed", "discarded")]
REASONS = ("max_attempts", "error", "complete")
NUMBERS = (
    "message",
    "attempt",
    "first",
    "published",
    "due",
    "claimed",
    "ended",
    "outcome",
    "reason",
    "error",
    "worker",
    "dead",
)


class Rows:
    """Collects whole columns; ``error`` is an index into ``errors``, a list of (type, text)."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Ints]] = {name: [] for name in NUMBERS}
        self.errors: list[tuple[str, str]] = []

    def add(self, message: Ints, **columns: Any) -> None:
        for name in NUMBERS:
            value = message if name == "message" else columns.get(name, ABSENT)
            whole = np.broadcast_to(np.asarray(value, dtype=np.int64), message.shape)
            self._parts[name].append(whole)

    def columns(self) -> dict[str, Ints]:
        return {name: np.concatenate(parts) for name, parts in self._parts.items()}


def words(codes: Ints, values: Sequence[str | None]) -> pa.Array:
    """The texts of the codes."""
    masked = pa.array(codes, mask=codes == ABSENT)
    return pa.DictionaryArray.from_arrays(masked, pa.array(values, pa.string())).cast(pa.string())


def numbers(values: Ints, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, mask=values == ABSENT).cast(kind or pa.int64())


def instants(values: Ints) -> pa.Array:
    return numbers(values, INSTANT)


def history_table(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({name: columns[name] for name in HISTORY.names}, schema=HISTORY)


def live_table(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({name: columns[name] for name in LIVE.names}, schema=LIVE)


_SECOND = 1_000_000
_LEASE = int(LEASE.total_seconds() * _SECOND)
_QUEUES = tuple(WORKERS)
_POISON = 3
_ROUNDS = 40
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Attempts:
    """Fills ``rows``. The arrays have one entry for each message that has not ended: which message,
    when it is due, its attempts (``attempt``), and the failures since its last progress
    (``spent``).
    """

    def __init__(self, window: Window, messages: Messages, random: np.random.Generator) -> None:
        self._window, self._messages, self._random = window, messages, random
        self.rows = Rows()
        self._queue = np.array([_QUEUES.index(k.queue) for k in KINDS])[messages.kind]
        self._backlogs = [self._backlog(queue) for queue in range(len(_QUEUES))]
        self._poison = self._choose_poison()
        self._published = messages.published.copy()
        self._brought_back = np.zeros(len(messages.published), dtype=bool)

    def run(self) -> None:
        message = self._end_without_a_try(np.arange(len(self._messages.published)))
        due, none = self._messages.due[message], np.zeros_like(message)
        state = message, due, due, none, none
        for _ in range(_ROUNDS):
            if not len(state[0]):
                return
            state = self._round(*state)

    def _round(
        self, message: Ints, due: Ints, ready: Ints, attempt: Ints, spent: Ints
    ) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """A message that was given back keeps its due time, but is ready only from then on."""
        kind = self._messages.kind[message]
        claimed = ready + self._wait(message, ready)
        outcome = self._outcomes(message, kind, claimed, attempt)
        ended = claimed + self._running(kind, claimed, outcome)
        tried = np.isin(outcome, [CODE["retried"], CODE["expired"]])
        dead = (tried & (spent + 1 >= MAX_ATTEMPTS)) | (outcome == CODE["failed"])
        error = self._errors(kind, claimed, outcome)
        self.rows.add(
            message,
            attempt=attempt + 1,
            due=due,
            claimed=claimed,
            ended=ended,
            outcome=outcome,
            first=self._messages.published[message],
            published=self._published[message],
            worker=self._workers(message),
            dead=dead.astype(np.int64),
            error=error,
            reason=_reasons(outcome, dead),
        )
        self._late_writes(message, attempt, claimed, ended, outcome)
        again = ~dead & (outcome != CODE["completed"])
        next_due = ended + self._pause(outcome, spent)
        counted = outcome != CODE["given_back"]
        back, back_due = self._bring_back(message, dead, ended, attempt, error)
        return (
            np.concatenate([message[again], message[back]]),
            np.concatenate([np.where(counted, next_due, due)[again], back_due]),
            np.concatenate([np.where(counted, next_due, ended)[again], back_due]),
            np.concatenate([(attempt + counted)[again], attempt[back] + 1]),
            np.concatenate([np.where(tried, spent + 1, 0)[again], np.zeros(len(back_due), int)]),
        )

    def _wait(self, message: Ints, ready: Ints) -> Ints:
        """Fair shares: a backlog delays the tenants who caused it, and hardly the others."""
        queue, tenant = self._queue[message], self._messages.tenant[message]
        shared: Floats = np.zeros(len(ready))
        for number, backlog in enumerate(self._backlogs):
            mine = queue == number
            shared[mine] = backlog.delay(ready[mine])
        lane = np.where(tenant == NOISY, 1.3, np.where(tenant < 8, 0.5, 0.06))
        usual = self._random.exponential(35_000, len(ready)) + 1_500
        return (shared * lane * self._random.uniform(0.7, 1.1, len(ready)) + usual).astype(np.int64)

    def _outcomes(self, message: Ints, kind: Ints, claimed: Ints, attempt: Ints) -> Ints:
        chance = self._random.random(len(message))
        flaky = np.array([k.flaky for k in KINDS])[kind]
        hopeless = np.array([k.hopeless for k in KINDS])[kind]
        steps = np.array([k.steps for k in KINDS])[kind]
        luck = self._random.random((3, len(message)))
        return np.select(
            [
                self._poison[message],
                luck[0] < 0.0004,
                self._broken(kind, claimed) & (chance < 0.93),
                chance < flaky,
                chance < flaky + hopeless,
                luck[1] < 0.0008,
                (luck[2] < steps) & (attempt < 4),
            ],
            [
                CODE["expired"],
                CODE["expired"],
                CODE["retried"],
                CODE["retried"],
                CODE["failed"],
                CODE["given_back"],
                CODE["deferred"],
            ],
            CODE["completed"],
        )

    def _broken(self, kind: Ints, at: Ints) -> Bools:
        begin, end = self._window.deploy
        charge = [k.name for k in KINDS].index("charge")
        broken: Bools = (kind == charge) & (at >= begin) & (at < end) & (not self._window.calm)
        return broken

    def _running(self, kind: Ints, claimed: Ints, outcome: Ints) -> Ints:
        median = np.array([k.run.total_seconds() * _SECOND for k in KINDS])[kind]
        run = median * self._random.lognormal(0, 0.55, len(kind))
        begin, end = self._window.slowdown
        slow = np.array([k.queue == "webhooks" for k in KINDS])[kind] & (not self._window.calm)
        run = np.where(slow & (claimed >= begin) & (claimed < end), run * 3.5, run)
        lost = _LEASE + self._random.integers(0, _SECOND, len(kind))
        quick = np.minimum(run, 5_000)
        run = np.where(outcome == CODE["given_back"], quick, np.minimum(run, _LEASE - _SECOND))
        return np.where(outcome == CODE["expired"], lost, run).astype(np.int64) + 1

    def _pause(self, outcome: Ints, spent: Ints) -> Ints:
        """Before the next attempt: growing after each error, five seconds after progress."""
        back_off = np.minimum(_SECOND * 2 ** np.minimum(spent, 8), 300 * _SECOND)
        jitter = self._random.uniform(0.5, 1.0, len(outcome))
        pause = np.where(outcome == CODE["deferred"], 5 * _SECOND, back_off * jitter)
        return pause.astype(np.int64)

    def _errors(self, kind: Ints, claimed: Ints, outcome: Ints) -> Ints:
        codes = np.full(len(outcome), ABSENT)
        failed = np.flatnonzero(np.isin(outcome, [CODE["retried"], CODE["failed"]]))
        broken = self._broken(kind, claimed)
        which, number = self._random.integers(0, 10_000, (2, len(failed)))
        for place, index in enumerate(failed.tolist()):
            kinds = KINDS[int(kind[index])].errors
            error = BAD_DEPLOY if broken[index] else kinds[int(which[place]) % len(kinds)]
            if outcome[index] == CODE["failed"]:
                error = HOPELESS
            codes[index] = len(self.rows.errors)
            self.rows.errors.append((error[0], error[1].replace("{n}", str(number[place]))))
        return codes

    def _late_writes(
        self, message: Ints, attempt: Ints, claimed: Ints, ended: Ints, outcome: Ints
    ) -> None:
        """Half of those whose lease expired were only slow: they complete too late."""
        late = (outcome == CODE["expired"]) & (self._random.random(len(message)) < 0.5)
        late &= ~self._poison[message]
        at = ended[late] + self._random.integers(1, 900_000, int(late.sum()))
        self.rows.add(
            message[late],
            attempt=attempt[late] + 1,
            claimed=claimed[late],
            ended=at,
            outcome=CODE["stale"],
            dead=0,
            reason=REASONS.index("complete"),
        )

    def _bring_back(
        self, message: Ints, dead: Bools, ended: Ints, attempt: Ints, error: Ints
    ) -> tuple[Ints, Ints]:
        """Operators redrive most dead letters of the bad release, and discard some of the rest."""
        broken = np.zeros(len(message), dtype=bool)
        for place in np.flatnonzero(dead & (error != ABSENT)).tolist():
            broken[place] = self.rows.errors[int(error[place])][0] == BAD_DEPLOY[0]
        chance = self._random.random(len(message))
        fresh = dead & ~self._brought_back[message]
        redriven = np.flatnonzero(fresh & broken & (chance < 0.7))
        discarded = np.flatnonzero(fresh & ~broken & (chance < 0.15))
        fixed = np.maximum(self._window.deploy[1] + 3 * HOUR, ended[redriven] + _SECOND)
        self._end_dead(message, attempt, error, redriven, fixed, "redriven")
        self._end_dead(message, attempt, error, discarded, ended[discarded] + 5 * HOUR, "discarded")
        self._brought_back[message[redriven]] = True
        self._published[message[redriven]] = fixed
        return redriven, fixed

    def _end_dead(
        self, message: Ints, attempt: Ints, error: Ints, which: Ints, at: Ints, outcome: str
    ) -> None:
        chosen = message[which]
        self.rows.add(
            chosen,
            attempt=attempt[which] + 1,
            ended=at,
            outcome=CODE[outcome],
            dead=0,
            first=self._messages.published[chosen],
            published=self._published[chosen],
            error=error[which],
            reason=REASONS.index("max_attempts"),
        )

    def _end_without_a_try(self, message: Ints) -> Ints:
        chance = self._random.random(len(message))
        for outcome, ends in (("cancelled", chance < 0.0003), ("lapsed", chance > 0.9998)):
            gone = message[ends]
            due = self._messages.due[gone]
            at = due + self._random.integers(1, 30 * _SECOND, len(gone))
            published = self._messages.published[gone]
            self.rows.add(
                gone,
                attempt=0,
                due=due,
                ended=at,
                outcome=CODE[outcome],
                dead=0,
                first=published,
                published=published,
            )
        rest: Ints = message[(chance >= 0.0003) & (chance <= 0.9998)]
        return rest

    def _workers(self, message: Ints) -> Ints:
        sizes = np.array(list(WORKERS.values()))
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        queue = self._queue[message]
        workers: Ints = (
            first[queue] + self._random.integers(0, 1 << 30, len(message)) % sizes[queue]
        )
        return workers

    def _backlog(self, queue: int) -> Backlog:
        incidents = {"billing": self._window.deploy, "webhooks": self._window.slowdown}
        slow = incidents.get(_QUEUES[queue])
        mine = self._messages.due[self._queue == queue]
        return Backlog(self._window, mine, None if self._window.calm else slow, left=0.8)

    def _choose_poison(self) -> Bools:
        poison = np.zeros(len(self._messages.published), dtype=bool)
        if not self._window.calm:
            poison[self._random.integers(0, len(poison), min(_POISON, len(poison)))] = True
        return poison


def _reasons(outcome: Ints, dead: Bools) -> Ints:
    tried = dead & (outcome != CODE["failed"])
    reasons: Ints = np.select(
        [tried, outcome == CODE["failed"]],
        [REASONS.index("max_attempts"), REASONS.index("error")],
        ABSENT,
    )
    return reasons
