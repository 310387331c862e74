"""Tells the story: messages are published, tried, retried, given up, brought back; as Arrow, and
written to a lake or to the history of a queue's database.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa

from laneway.errors import InvalidOption
from laneway.lake.catalog import START, Catalog
from laneway.lake.folder import Folder, batch_path, by_day, write_live
from laneway.lake.lake import plainly
from laneway.lake.owner import has_owner

from .attempts import (
    ABSENT,
    CODE,
    OUTCOMES,
    REASONS,
    TERMINAL,
    Attempts,
    history_table,
    instants,
    live_table,
    numbers,
    words,
)
from .messages import DAY, KINDS, TENANTS, WORKERS, Ints, Messages, Window, publish

_MOST_DAYS = 3660


@dataclass(frozen=True, slots=True)
class SyntheticHistory:
    """A made-up history and what was still alive at its end."""

    history: pa.Table
    live: pa.Table
    until: datetime


def synthesize(
    messages: int, *, until: datetime, days: float = 14, seed: int = 1, calm: bool = False
) -> SyntheticHistory:
    """The same arguments give the same history. ``calm`` leaves out the incidents.

    >>> synthesize(1_000_000, until=datetime.now(UTC)).history.num_rows
    """
    if messages < 1 or not 0 < days <= _MOST_DAYS:
        raise InvalidOption(
            "a history needs at least one message, and above 0 to ten years of days"
        )
    if seed < 0:
        raise InvalidOption(f"seed is {seed}: it must not be negative")
    end = _micros(until)
    if end - int(days * DAY) < _micros(datetime.min.replace(tzinfo=UTC)):
        raise InvalidOption(f"{days:g} days before {until.isoformat()} is before the year 1")
    window = Window(end - int(days * DAY), end, calm)
    random = np.random.default_rng(seed)
    published = publish(window, messages, random)
    attempts = Attempts(window, published, random)
    attempts.run()
    return _cut(published, attempts, until, end)


def _cut(messages: Messages, attempts: Attempts, until: datetime, end: int) -> SyntheticHistory:
    """Attempts that ended by then are the history. The next attempt of each other message tells
    its state."""
    columns = attempts.rows.columns()
    order = np.argsort(columns["ended"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    past = columns["ended"] <= end
    history = {name: values[past] for name, values in columns.items()}
    future = {name: values[~past] for name, values in columns.items()}
    table = _history(messages, history, attempts.rows.errors)
    return SyntheticHistory(table, _live(messages, history, future, end), until)


def _history(messages: Messages, rows: dict[str, Ints], errors: list[tuple[str, str]]) -> pa.Table:
    message, outcome, count = rows["message"], rows["outcome"], len(rows["message"])
    stale = outcome == CODE["stale"]
    ended_dead = np.isin(outcome, [CODE["redriven"], CODE["discarded"]])
    columns = {
        **_names(messages, message),
        "id": numbers(np.arange(1, count + 1)),
        "xid": numbers(1000 + np.arange(count) // 8),
        "message_id": numbers(message + 1),
        "priority": numbers(np.where(stale, ABSENT, messages.priority[message]), pa.int16()),
        "attempt": numbers(rows["attempt"]),
        "fence": numbers(_fences(rows)),
        "worker": words(rows["worker"], _WORKER_NAMES),
        "outcome": words(outcome, OUTCOMES),
        "reason": words(rows["reason"], REASONS),
        "error_type": words(rows["error"], [kind for kind, _ in errors]),
        "error": words(np.where(ended_dead, ABSENT, rows["error"]), [text for _, text in errors]),
        "first_published_at": instants(rows["first"]),
        "published_at": instants(rows["published"]),
        "due": instants(rows["due"]),
        "claimed_at": instants(np.where(stale, ABSENT, rows["claimed"])),
        "started_at": instants(_started(rows)),
        "ended_at": instants(rows["ended"]),
        "payload_size": numbers(np.where(stale, ABSENT, messages.size[message])),
        "terminal": pa.array(np.isin(outcome, TERMINAL)),
        "dead": pa.array(rows["dead"] == 1),
    }
    return history_table(columns)


def _live(
    messages: Messages, history: dict[str, Ints], future: dict[str, Ints], end: int
) -> pa.Table:
    """The first attempt of each message that had not ended, or its dead letter."""
    ids, first = np.unique(future["message"], return_index=True)
    outcome = future["outcome"][first]
    # A late result of a lost lease says nothing about the state of the message.
    real = (outcome != CODE["stale"]) & (messages.published[ids] <= end)
    ids, first = ids[real], first[real]
    claimed, due = future["claimed"][first], future["due"][first]
    is_dead = np.isin(future["outcome"][first], [CODE["redriven"], CODE["discarded"]])
    leased = ~is_dead & (claimed != ABSENT) & (claimed <= end)
    state = np.select([is_dead, leased, due > end], [3, 2, 1], 0)
    known = set(ids.tolist())
    dead = np.array([i for i in _dead_ids(history) if i not in known], dtype=np.int64)
    message = np.concatenate([ids, dead])
    absent = np.full(len(dead), ABSENT)
    columns = {
        **_names(messages, message),
        "message_id": numbers(message + 1),
        "state": words(
            np.concatenate([state, np.full(len(dead), 3)]),
            ("waiting", "scheduled", "leased", "dead"),
        ),
        "attempt": numbers(np.concatenate([future["attempt"][first] - 1, absent * 0])),
        "due": instants(np.concatenate([np.where(is_dead, ABSENT, due), absent])),
        "claimed_at": instants(np.concatenate([np.where(leased, claimed, ABSENT), absent])),
        "seen_at": instants(np.full(len(message), end)),
    }
    return live_table(columns)


def _dead_ids(history: dict[str, Ints]) -> list[int]:
    """Dead letters that were neither redriven nor discarded."""
    back = np.isin(history["outcome"], [CODE["redriven"], CODE["discarded"]])
    change = np.where(history["dead"] == 1, 1, np.where(back, -1, 0))
    changed = change != 0
    ids, place = np.unique(history["message"][changed], return_inverse=True)
    balance = np.bincount(place, weights=change[changed], minlength=len(ids))
    return [int(i) for i in ids[balance > 0]]


def _names(messages: Messages, message: Ints) -> dict[str, pa.Array]:
    kind = messages.kind[message]
    return {
        "queue": words(kind, [k.queue for k in KINDS]),
        "kind": words(kind, [k.name for k in KINDS]),
        "channel": words(messages.tenant[message], _TENANT_NAMES),
    }


def _started(rows: dict[str, Ints]) -> Ints:
    """Every fifth message had waited inside its worker before its handler began."""
    ran = np.isin(rows["outcome"], [CODE[name] for name in ("completed", "retried", "failed")])
    claimed = np.where(ran, rows["claimed"], 0)
    begun = claimed + (rows["ended"] - claimed) // 5
    return np.where(ran & (rows["claimed"] != ABSENT) & (rows["message"] % 5 == 0), begun, ABSENT)


def _fences(rows: dict[str, Ints]) -> Ints:
    """A number for each claim, in the order of claims; a late result has the old one."""
    claimed = rows["claimed"]
    fences = np.full(len(claimed), ABSENT)
    held = claimed != ABSENT
    _, rank = np.unique(claimed[held], return_inverse=True)
    fences[held] = rank + 1
    return fences


def _micros(at: datetime) -> int:
    if at.tzinfo is None:
        raise InvalidOption("`until` needs a time zone")
    return (at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_TENANT_NAMES = [f"tenant-{n:03}" for n in range(1, TENANTS + 1)]
_WORKER_NAMES = [f"{queue}-{n}" for queue in WORKERS for n in range(1, WORKERS[queue] + 1)]
_STATES = ("waiting", "scheduled", "leased", "dead")


@plainly()
def write_lake(
    made_up: SyntheticHistory, folder: Folder, batch: int = 0, *, live: bool = True
) -> int:
    """Writes one batch with a file for each day, and the messages that have not ended. Returns the
    number of days. A folder with batches of a real queue is refused."""
    if live and (has_owner(folder) or any(f.batch != batch for f in folder.history_files())):
        raise InvalidOption(f"{folder.root} has a real history: make one up in another folder")
    count = 0
    for day, rows in by_day(made_up.history):
        path = batch_path(day, batch)
        folder.remove(path)
        folder.write_table(rows, f"{path}/part-00000.parquet")
        count += 1
    if live:
        write_live(folder, made_up.live, made_up.until, {})
    return count


def write_database(made_up: SyntheticHistory, catalog: Catalog) -> None:
    """Adds to the empty history of a queue, one transaction per day; the database assigns ids."""
    if catalog.behind(START)[0]:
        raise InvalidOption("the queue has a real history: make one up in another schema")
    for day, rows in by_day(made_up.history):
        catalog.load(rows, date.fromisoformat(day))
