"""publish: arrays of columns instead of rows, so that a batch is one cheap statement. Ten thousand
messages and more go by COPY, which writes many rows to a page at a time, and reads what comes while
the next rows are made.

Key modes: what publish finds in use is replaced by a second statement.
Topics: the database makes the copies, in one round trip.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import chain, islice, repeat
from operator import add, itemgetter
from struct import Struct
from typing import Any

from laneway.contract import BATCH
from laneway.engines.collector import no_collection
from laneway.engines.publish import has_modes, publish_modes
from laneway.model import Draft, Published
from laneway.plan import Plan, Statement
from laneway.topic import TOPIC_BATCH, Subscription, TopicCopy, copies

from .base import PostgresqlSql, statement

# Columns in which one element can stand for the whole batch; see publish_v1.
_ONE_FOR_ALL = frozenset(
    Draft._fields.index(name)
    for name in (
        "queue",
        "channel",
        "kind",
        "content_type",
        "priority",
        "delay",
        "expires_in",
        "max_attempts",
        "key_scope",
    )
)


_TAKEN = frozenset(("published", "existing"))


class PostgresqlPublish:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        if has_modes(drafts):
            return (yield from publish_modes(drafts, self._publish, self._replace))
        published: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            published += yield from self._publish(drafts[start : start + BATCH])
        return published

    _may_copy: bool | None = None

    def publish_bulk(self, drafts: Iterable[Draft], count: int) -> Plan[list[Published]]:
        """By COPY, if this role may write the tables itself, and no channel can refuse anything."""
        if self._may_copy is None:
            self._may_copy = (yield self._sql.statement("may_copy"))[0][0]
        if not self._may_copy:
            return (yield from self.publish(list(drafts)))
        ((now,),) = yield self._sql.statement_now("copy_time")
        ((ids, by_kind, refusing),) = yield self._sql.statement("copy_state", count)
        if refusing:
            return (yield from self.publish(list(drafts)))
        rows = CopiedRows(drafts, ids, now, by_kind)
        if rows.are_plain and self._sql._clock is None:
            yield self._copy("copy_plain", rows.plain())
            ((at,),) = yield self._sql.statement("copied_at", ids[0])
            rows.published_at(at)
        if rows.left:
            yield self._copy("copy_messages", rows.messages())
        yield self._copy("copy_wakes", rows.wakes())
        ((heard,),) = yield self._sql.statement("copy_heard", now)
        if heard:
            soon, kinds = list(rows.queues_due_soon), list(rows.kinds)
            yield self._sql.statement("copy_announce", ids, soon, kinds, now)
        return rows.published

    def _copy(self, name: str, pieces: Iterator[bytes]) -> Statement:
        return Statement(statement(name, self._sql.schema), pieces, copy=True)  # type: ignore[arg-type]

    def _publish(self, drafts: Sequence[Draft]) -> Plan[Sequence[Published]]:
        rows = yield self._sql.statement_now("publish", *columns(drafts))
        return list(_answers(*rows[0]))

    def _replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        """A statement of its own: of one message each decides for itself, so that they need no
        transaction around both."""
        *values, modes = zip(*drafts, strict=True)
        bounds = [mode.debounce_for if mode else None for mode in modes]
        rows = yield self._sql.statement_now("replace", *map(list, values), bounds)
        return [None if status == "free" else Published(id, status) for id, status in rows]


def _answers(ids: Sequence[int], statuses: Sequence[str] | None) -> Iterator[Published]:
    if statuses is None:
        return map(Published._make, zip(ids, repeat("published")))
    return (
        Published(id if status in _TAKEN else None, status)  # type: ignore[arg-type]
        for id, status in zip(ids, statuses, strict=True)
    )


def columns(drafts: Sequence[Draft]) -> list[list[Any] | None]:
    """Without the modes. None instead of an empty list: drivers handle it faster and need no type
    for it."""
    if len(drafts) == 1:
        return [None if value is None else [value] for value in drafts[0][:-1]]
    values = list(zip(*drafts, strict=True))[:-1]
    return [_column(number, column) for number, column in enumerate(values)]


def _column(number: int, values: tuple[Any, ...]) -> list[Any] | None:
    first = values[0]
    if number == 0 or (first is not None and number not in _ONE_FOR_ALL):
        return list(values)
    if values.count(first) < len(values):
        return list(values)
    return None if first is None else [first]


# Rows as COPY reads them, in its binary format: the number of fields, then the length and the bytes
# of each.

_SOON = timedelta(seconds=2)
_FIRST_PART = 250  # rows that are made before the server has any
_PART = 1_000  # rows that are sorted together
_PIECE = 250  # rows that are sent together
_COPY_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_TRUE = b"\0\0\0\1\1"
_FALSE = repeat(False)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIELDS, _PLAIN_FIELDS = 15, 9
_MESSAGE = Struct("!hiq").pack  # the number of fields, the first of which is the id
_WAKE = Struct("!hiqiq").pack  # 9 fields, the first of which are the position and the count
_SIZE = Struct("!i").pack
_TIME = Struct("!iq").pack
_NUMBERS = Struct("!ihii").pack  # priority, max_attempts
_PRIORITY = Struct("!ih").pack


@lru_cache(maxsize=100_000)
def channel_id(queue: str, channel: str) -> bytes:
    """The same as channel_id_v1 in the database."""
    return sha256(f"{len(queue)}:{queue}{channel}".encode()).digest()[:16]


def _text(value: str) -> bytes:
    data = value.encode()
    return _SIZE(len(data)) + data


def _moment(at: datetime | None) -> bytes:
    return _NULL if at is None else _TIME(8, (at - _EPOCH) // _MICROSECOND)


@lru_cache(maxsize=100_000)
def _channel(queue: str, channel: str) -> bytes:
    return _SIZE(16) + channel_id(queue, channel) + _text(queue) + _text(channel)


@lru_cache(maxsize=10_000)
def _label(kind: str, content_type: str, priority: int, attempts: int) -> bytes:
    return _text(kind) + _text(content_type) + _NUMBERS(2, priority, 4, attempts)


@lru_cache(maxsize=10_000)
def _lane(priority: int, lane: str) -> bytes:
    return _PRIORITY(2, priority) + _text(lane)


class CopiedRows:
    """The messages of a bulk publish, and their wakes. Drafted and made part by part, because the
    server reads what was sent while the next part is made; and of each part by column, because
    most columns have nothing in them or always the same.

    Plain messages need no times and nothing else that is seldom given: the table has defaults for
    these columns, which cost the server less than to read them."""

    def __init__(
        self, drafts: Iterable[Draft], ids: Sequence[int], now: datetime, by_kind: Sequence[str]
    ) -> None:
        self._drafts, self._ids = iter(drafts), ids
        self._by_kind = frozenset(by_kind)
        self._due_now: Counter[bytes] = Counter()
        self._due_later: dict[tuple[bytes, datetime], tuple[int, datetime]] = {}
        self.published_at(now)
        self.left = True
        self._draft(_FIRST_PART)
        # Known when the messages have been read:
        self.published: list[Published] = []
        self.queues_due_soon: set[str] = set()
        self.kinds: set[str] = set()

    def published_at(self, now: datetime) -> None:
        """When all of them are published, those that are drafted already too."""
        self._now, self._encoded_now, self._soon = now, _moment(now), now + _SOON

    @property
    def are_plain(self) -> bool:
        """Whether the messages that come next are."""
        return self.left and not self._by_kind and all(map(_is_empty, self._seldom))

    def plain(self) -> Iterator[bytes]:
        """The messages up to the first part with one that is not plain."""
        return self._copied(plain=True)

    def messages(self) -> Iterator[bytes]:
        """Those that are left."""
        return self._copied(plain=False)

    def wakes(self) -> Iterator[bytes]:
        """Of the messages that have been read."""
        first = self._ids[0]  # none of the messages lies before it
        now = self._encoded_now * 2
        for (place, at), (count, due) in self._due_later.items():
            if at == self._now:
                self._due_later[place, at] = count + self._due_now.pop(place, 0), due
        yield _COPY_HEAD
        rows = chain(
            (_WAKE(9, 8, first, 8, count) + place + now for place, count in self._due_now.items()),
            (
                _WAKE(9, 8, first, 8, count) + place + self._moment(at) + self._moment(due)
                for (place, at), (count, due) in self._due_later.items()
            ),
        )
        yield from _pieces(rows)
        yield _COPY_END

    def _copied(self, plain: bool) -> Iterator[bytes]:
        yield _COPY_HEAD
        pieces = self._rows(plain)
        while pieces:
            yield from pieces
            with no_collection():
                self._draft(_PART)
                pieces = self._rows(plain)
        yield _COPY_END

    def _draft(self, size: int) -> None:
        """The next part, by column."""
        drafts = list(islice(self._drafts, size))
        self.left = bool(drafts)
        if drafts:
            self._next: Any = Draft._make(zip(*drafts, strict=True))

    @property
    def _seldom(self) -> tuple[Sequence[Any], ...]:
        c = self._next
        return c.delay, c.at, c.headers, c.expires_in, c.expires_at

    def _rows(self, plain: bool) -> list[bytes]:
        """Rows of a channel are side by side, in order, so that loading writes to few pages of an
        index. They get their ids in that order, so that the index of ids grows at its end."""
        if not self.left or (plain and not self.are_plain):
            return []
        c = self._next
        start = len(self.published)
        ids = self._ids[start : start + len(c.queue)]
        channels = list(map(_channel, c.queue, c.channel))
        by_kind = list(map(self._by_kind.__contains__, c.queue)) if self._by_kind else ()
        dues = None if plain else self._times_due(c)
        self._count(c, channels, by_kind, dues)
        self.kinds.update(c.kind)
        columns = [channels, list(map(_label, c.kind, c.content_type, c.priority, c.max_attempts))]
        if not plain:
            columns.append(self._times(c, dues, by_kind))
        columns.append(c.payload)
        order = sorted(range(len(ids)), key=channels.__getitem__)
        if len(ids) > 1:
            columns = [*map(itemgetter(*order), columns)]
        given = [0] * len(ids)
        for number, id in zip(order, ids, strict=True):
            given[number] = id
        self.published += _answers(given, None)
        *middle, payloads = columns
        fields = _PLAIN_FIELDS if plain else _FIELDS
        heads, sizes = map(_MESSAGE, repeat(fields), repeat(8), ids), map(_SIZE, map(len, payloads))
        rows = map(b"".join, zip(heads, *middle, sizes, payloads, strict=False))
        return list(_pieces(rows))

    def _count(
        self, c: Any, channels: list[bytes], by_kind: Sequence[bool], dues: list[datetime] | None
    ) -> None:
        """Of each channel, lane, priority and time how many, and when the first of them is due."""
        lanes: Iterable[str] = repeat("")
        if by_kind:
            kinds = zip(c.kind, by_kind, strict=True)
            lanes = [f"={kind}" if found else "" for kind, found in kinds]
        places = map(add, channels, map(_lane, c.priority, lanes))
        if dues is None:
            self._due_now.update(places)
            self.queues_due_soon.update(c.queue)
            return
        for place, queue, due in zip(places, c.queue, dues, strict=True):
            at = max(due, self._now)
            count, first = self._due_later.get((place, at), (0, due))
            self._due_later[place, at] = count + 1, min(first, due)
            if at < self._soon:
                self.queues_due_soon.add(queue)

    def _moment(self, at: datetime) -> bytes:
        return self._encoded_now if at is self._now else _moment(at)

    def _times_due(self, c: Any) -> list[datetime] | None:
        """None: all are due now."""
        if _is_empty(c.delay) and _is_empty(c.at):
            return None
        now, nothing = self._now, timedelta(0)
        pairs = zip(c.delay, c.at, strict=True)
        return [now + (delay or nothing) if at is None else at for delay, at in pairs]

    def _times(self, c: Any, dues: list[datetime] | None, by_kind: Sequence[bool]) -> list[bytes]:
        """Whether it is found by its kind, headers, both times of publishing, when it is due, when
        it expires."""
        now = self._now
        published = self._encoded_now * 2
        rows = zip(
            by_kind or _FALSE,
            c.headers,
            dues or repeat(now),
            c.expires_in,
            c.expires_at,
            strict=False,
        )
        return [
            (_TRUE if by_its_kind else _NULL)
            + (_NULL if headers is None else _text(f"\1{headers}"))
            + published
            + self._moment(due)
            + _moment(expires_at if expires_in is None else now + expires_in)
            for by_its_kind, headers, due, expires_in, expires_at in rows
        ]


def _pieces(rows: Iterator[bytes]) -> Iterator[bytes]:
    return iter(lambda: b"".join(islice(rows, _PIECE)), b"")


def _is_empty(column: Sequence[Any]) -> bool:
    return column.count(None) == len(column)


_QUEUE = Draft._fields.index("queue")


class PostgresqlTopics:
    def __init__(self, sql: PostgresqlSql, publish: PostgresqlPublish) -> None:
        self._sql = sql
        self._publish = publish

    def subscribe(self, subscription: Subscription) -> Plan[None]:
        yield self._sql.statement("subscribe", *subscription)

    def unsubscribe(self, topic: str, queue: str) -> Plan[bool]:
        rows = yield self._sql.statement("unsubscribe", topic, queue)
        return bool(rows)

    def subscriptions(self, topic: str | None) -> Plan[list[Subscription]]:
        rows = yield self._sql.statement("subscriptions", topic)
        return [Subscription(*row) for row in rows]

    def publish_topic(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        if has_modes(drafts):
            return (yield from self._publish_copies(topic, drafts))
        copied: list[list[TopicCopy]] = [[] for _ in drafts]
        for start in range(0, len(drafts), TOPIC_BATCH):
            values = columns(drafts[start : start + TOPIC_BATCH])
            del values[_QUEUE]
            rows = yield self._sql.statement_now("publish_topic", topic, *values)
            for ordinal, queue, id, status in rows:
                taken = status in ("published", "existing")
                copied[start + ordinal - 1].append(TopicCopy(queue, id if taken else None, status))
        return copied

    def subscribers(self, topic: str) -> Plan[list[Subscription]]:
        rows = yield self._sql.statement("subscribers", topic)
        return [Subscription(topic, *row) for row in rows]

    def _publish_copies(self, topic: str, drafts: Sequence[Draft]) -> Plan[list[list[TopicCopy]]]:
        subscribers = yield from self.subscribers(topic)
        rounds = [copies(draft, subscribers) for draft in drafts]
        published = iter(
            (yield from self._publish.publish([copy for part in rounds for copy in part]))
        )
        return [[TopicCopy(copy.queue, *next(published)) for copy in part] for part in rounds]
