"""Parts of publish: drafts as rows, and the wakes that tell claims about new messages."""

from collections.abc import Sequence
from typing import Any

from laneway.engines.keys import draft_key
from laneway.engines.times import micros
from laneway.model import Draft, Published, PublishStatus
from laneway.plan import Plan, Row

from .base import MysqlSql, chunks, joined, pair_id, text

WakeRow = tuple[int, bytes, int, int, int, int, int, bool, bytes, bytes]
"""The columns of add_wakes."""


class NewRow:
    """A draft, its row, and what becomes of it: ``status`` is None while it is to be published."""

    __slots__ = (
        "channel_id",
        "due",
        "expires_at",
        "first",
        "id",
        "key",
        "key_id",
        "priority",
        "queue",
        "row",
        "status",
    )

    def __init__(self, draft: Draft, now: int) -> None:
        queue, channel = draft.queue.encode(), draft.channel.encode()
        self.queue = queue
        self.channel_id = pair_id(queue, channel)
        self.priority = draft.priority
        self.due = _time(now, draft.at, draft.delay, now)
        self.expires_at = _time(now, draft.expires_at, draft.expires_in, None)
        key = draft_key(draft)
        self.key = None if key is None else key.encode()
        self.key_id = b"" if self.key is None else pair_id(queue, self.key)
        self.id: int | None = None
        self.status: PublishStatus | None = None
        self.first: NewRow | None = None
        """The one with the same key that comes before it in the batch."""
        self.row: tuple[Any, ...] = (
            self.channel_id,
            self.due,
            now,
            now,
            self.expires_at,
            None if draft.key_window is None else micros(draft.key_window),
            draft.max_attempts,
            draft.priority,
            queue,
            channel,
            draft.kind.encode(),
            self.key,
            draft.content_type.encode(),
            None if draft.headers is None else draft.headers.encode(),
            draft.payload,
        )

    @property
    def lane(self) -> bytes:
        return b"=" + bytes(self.row[10])

    @property
    def kind_row(self) -> tuple[Any, ...]:
        """The columns of add_kind_messages."""
        return self.channel_id, self.lane, self.priority, self.due, self.id

    def published(self) -> Published:
        if self.first is not None:
            taken = self.first.id is not None
            return Published(self.first.id, "existing" if taken else self.first.published().status)
        return Published(self.id, self.status or "published")


class ReleasedRow(NewRow):
    """A node of a flow that is published now; its content does not leave the server."""

    __slots__ = ()

    def __init__(
        self, id: int, priority: int, due: int, expires_at: int | None, row: tuple[Any, ...]
    ) -> None:
        self.id, self.priority, self.due, self.expires_at = id, priority, due, expires_at
        self.queue, self.row = row[8], row
        self.channel_id = pair_id(row[8], row[9])


def released_rows(held: Row, now: int) -> list[ReleasedRow]:
    """From a row of lock_held."""
    count, ids, numbers, queue, channel, kind = held
    priority, delay, at, expires_in, expires_at, *_ = text(numbers).split(",")
    due = int(at) if at else now + int(delay or 0)
    lapses = expires_at or (expires_in and now + int(expires_in))
    alike = int(priority), due, int(lapses) if lapses else None
    row = (*[None] * 8, queue, channel, kind)
    return [ReleasedRow(int(id), *alike, row) for id in joined(count, ids)]


def new_rows(drafts: Sequence[Draft], now: int) -> list[NewRow]:
    return [NewRow(draft, now) for draft in drafts]


def wakes(new: Sequence[NewRow], now: int) -> list[WakeRow]:
    """One for each channel, priority and time. Its position need not be that of a message: no
    message of the group comes before it."""
    groups: dict[tuple[bytes, int, int], list[NewRow]] = {}
    for row in new:
        at = row.due if row.due > now else now
        groups.setdefault((row.channel_id, row.priority, at), []).append(row)
    return [_wake(at, group) for (_, _, at), group in groups.items()]


def kind_wakes(new: Sequence[NewRow], now: int) -> list[tuple[Any, ...]]:
    """As wakes, of each kind apart: the columns of add_kind_wakes."""
    by_lane: dict[bytes, list[NewRow]] = {}
    for row in new:
        by_lane.setdefault(row.lane, []).append(row)
    return [
        (*wake[:5], *wake[6:], lane) for lane, rows in by_lane.items() for wake in wakes(rows, now)
    ]


def _wake(at: int, group: list[NewRow]) -> WakeRow:
    first = group[0]
    due = min(row.due for row in group)
    lowest = min(row.id for row in group if row.id is not None)
    queue, channel = first.row[8], first.row[9]
    ahead = first.priority > 0 or due < at
    return at, first.channel_id, due, lowest, len(group), 0, first.priority, ahead, queue, channel


def _time(now: int, moment: Any, after: Any, default: Any) -> Any:
    if moment is not None:
        return micros(moment)
    return default if after is None else now + micros(after)


class MysqlAppend:
    """Parts of publish: insert messages, and refuse what a channel does not take."""

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    def add_messages(self, new: Sequence[NewRow], packet: int, step: int) -> Plan[None]:
        """Their ids follow each other by ``step``."""
        for chunk in chunks(new, packet):
            rows = yield self._sql.statement("add_messages", [row.row for row in chunk])
            first = int(rows[0][0])
            for number, row in enumerate(chunk):
                row.id = first + number * step
        yield from self.add_expiries(new)

    def add_expiries(self, new: Sequence[NewRow]) -> Plan[None]:
        expiring = [(row.id, row.expires_at) for row in new if row.expires_at is not None]
        yield from self._sql.insert("add_expiries", expiring)

    def queues_by_kind(self) -> Plan[set[bytes]]:
        """Those that are claimed by kind."""
        return {bytes(row[0]) for row in (yield self._sql.statement("kind_queues"))}

    def add_wakes(self, new: Sequence[NewRow], now: int, by_kind: set[bytes]) -> Plan[None]:
        """``by_kind``: the queues that are claimed so."""
        plain = [row for row in new if row.queue not in by_kind] if by_kind else new
        yield from self._sql.insert("add_wakes", wakes(plain, now))
        if len(plain) < len(new):
            laned = [row for row in new if row.queue in by_kind]
            yield from self._sql.insert("add_kind_messages", [row.kind_row for row in laned])
            yield from self._sql.insert("add_kind_wakes", kind_wakes(laned, now))

    def refuse(self, batch: Sequence[NewRow]) -> Plan[None]:
        """Marks messages whose channel is full or being removed.

        The backlog is what this publisher sees as committed and unfinished in the channel, plus the
        batch itself. Publishers do not wait for each other, so transactions that are open at the
        same time can exceed the limit by what they hold.
        """
        new = [row for row in batch if row.status is None]
        if not new:
            return
        rows = yield self._sql.statement(
            "refusing_channels", sorted({row.channel_id for row in new})
        )
        closed = {bytes(id) for id, closing, _ in rows if closing}
        limits = {bytes(id): int(backlog) for id, _, backlog in rows if backlog is not None}
        room = (yield from self._room(limits)) if limits else {}
        for row in new:
            if row.channel_id in closed:
                row.status = "closed"
            elif row.channel_id in room:
                room[row.channel_id] -= 1
                if room[row.channel_id] < 0:
                    row.status = "full"

    def _room(self, limits: dict[bytes, int]) -> Plan[dict[bytes, int]]:
        """How many more messages each channel takes."""
        rows = yield self._sql.union("count_backlog", list(limits.items()))
        return {bytes(id): limits[bytes(id)] - int(count) for id, count in rows}
