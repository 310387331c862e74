"""The two sides on SQLite: the library, and a table as one would write it in an afternoon."""

import json
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laneway import NewMessage, Queue

from .bench import PAYLOAD
from .sides import Drained

_HISTORY = (
    "message_id, fence, attempt, first_published_at, published_at, due, claimed_at, ended_at, "
    "payload_size, terminal, dead, priority, queue, channel, kind, worker, outcome"
)


class OursOnSqlite:
    """As a user has it."""

    def __init__(self, path: Path) -> None:
        self.queue = Queue(f"sqlite:///{path}", upkeep_every=None)
        self.queue.install()

    def drafts(self, channels: Sequence[str]) -> list[NewMessage]:
        return [NewMessage(PAYLOAD, channel) for channel in channels]

    def publish(self, drafts: list[NewMessage]) -> None:
        self.queue.publish_many(drafts)

    def drain(self, batch: int) -> Drained:
        messages = calls = 0
        while claim := self.queue.claim(batch):
            self.queue.complete(claim)
            messages += len(claim)
            calls += 2
        return Drained(messages, calls + 1)

    def close(self) -> None:
        self.queue.close()


class BareOnSqlite:
    """No fairness, no fences, no limits; the same durability, payload and history rows."""

    _TABLES = f"""
        create table job (id integer primary key, channel text not null,
            status text not null default 'ready', due integer not null, until integer, worker text,
            attempts integer not null default 0, payload blob not null);
        create index job_ready on job (due, id) where status = 'ready';
        create table job_history (id integer primary key autoincrement, {_HISTORY});
        create index job_history_message on job_history (message_id);
        """
    _PUBLISH = "insert into job (channel, due, payload) values (?, ?, ?)"
    _CLAIM = """
        update job set status = 'leased', until = ?1 + 30000000, worker = 'worker',
            attempts = attempts + 1
        where id in (
            select id from job where status = 'ready' and due <= ?1 order by due, id limit ?2)
        returning id, channel, attempts, payload"""
    _NOTE = f"""
        insert into job_history ({_HISTORY})
        select id, id, attempts, due, due, due, due, ?2, length(payload), 1, 0, 0, 'default',
            channel, '', worker, 'completed'
        from job where id in (select value from json_each(?1)) and status = 'leased'"""  # noqa: S608
    _END = "delete from job where id in (select value from json_each(?1)) and status = 'leased'"

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for setting in ("journal_mode = wal", "synchronous = full", "cache_size = -16000"):
            self._connection.execute(f"pragma {setting}").fetchone()
        self._connection.executescript(self._TABLES)

    def drafts(self, channels: Sequence[str]) -> list[str]:
        return list(channels)

    def publish(self, drafts: list[str]) -> None:
        now = _now()
        rows = [(channel, now, PAYLOAD) for channel in drafts]
        self._write(lambda: self._connection.executemany(self._PUBLISH, rows))

    def drain(self, batch: int) -> Drained:
        messages = calls = 0
        while rows := self._claim(batch):
            self._complete([row[0] for row in rows])
            messages += len(rows)
            calls += 2
        return Drained(messages, calls + 1)

    def close(self) -> None:
        self._connection.close()

    def _claim(self, batch: int) -> list[Any]:
        def claim() -> list[Any]:
            return self._connection.execute(self._CLAIM, (_now(), batch)).fetchall()

        return self._write(claim)  # type: ignore[no-any-return]

    def _complete(self, ids: list[int]) -> None:
        def complete() -> None:
            listed = json.dumps(ids)
            self._connection.execute(self._NOTE, (listed, _now()))
            self._connection.execute(self._END, (listed,))

        self._write(complete)

    def _write(self, act: Any) -> Any:
        self._connection.execute("begin immediate")
        answer = act()
        self._connection.execute("commit")
        return answer


def _now() -> int:
    return time.time_ns() // 1000
