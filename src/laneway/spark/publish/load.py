"""One attempt of one task of a frame: its rows go straight into the table of messages, as a part
that nobody sees until the job's commit (docs/decisions/0020-bulk-publish.md).

What many rows have in common, their queue, channel, kind and so on, is a label. It is encoded once
for each label of a batch; only what differs from row to row is encoded by column, in Arrow.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from laneway.contract import DEFAULT_MAX_ATTEMPTS
from laneway.engines.postgresql.publish import channel_id
from laneway.payload import JSON
from laneway.spark.errors import JobIsOver
from laneway.spark.options import SparkOptions
from laneway.spark.store import TASKS
from laneway.stores.postgresql import PostgresqlStore

from .copying import HEAD, PG_EPOCH, TAIL, as_interval, joined, row_fields
from .keys import with_key_names
from .values import all_shaped

_MOST_WORK = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NULL = b"\xff\xff\xff\xff"
_OWN = ("due", "expires_at", "key", "key_window", "payload")
_TIMES = ("due", "published_at", "first_published_at")
_TEXTS = ("queue", "channel", "kind", "content_type")
_TIME = pa.timestamp("us", tz="UTC")


class Label(NamedTuple):
    """Null headers are an empty text."""

    queue: str
    channel: str
    kind: str
    content_type: str
    priority: int
    max_attempts: int
    headers: str = ""


# What the table of messages has as defaults. They cost the server less than to read them.
_LEFT_OUT = Label("default", "default", "", JSON, 0, DEFAULT_MAX_ATTEMPTS)


class Work(NamedTuple):
    """Messages that one wake can stand for. Without a time they are due when their COPY began."""

    queue: str
    channel: str
    kind: str
    priority: int
    due: int | None


def load(
    options: SparkOptions,
    job: str,
    defaults: Mapping[str, Any],
    batches: Iterator[pa.RecordBatch],
) -> tuple[list[int], int]:
    """Returns the parts, none if there are no rows, and the number of rows. The job may end before
    this attempt does: then it leaves nothing behind."""
    label = Label(options["queue"] or "default", options["channel"] or "default", **defaults)
    shaped = all_shaped(batches, options)
    ready = (with_key_names(batch, label.channel, label.kind) for batch in shaped)
    batch = next(ready, None)
    parts, rows = list[int](), 0
    if batch is None:
        return parts, rows
    with TASKS.transaction(options.address) as store:
        while batch is not None:
            part = LoadedPart(store, job, label, batch.schema.names)
            with store.copy("copy_in", table="message", columns=part.columns) as copy:
                copy.write(HEAD)
                while batch is not None and len(part.work) < _MOST_WORK:
                    copy.write(part.encoded(batch))
                    rows += batch.num_rows
                    batch = next(ready, None)
                copy.write(TAIL)
            part.end()
            parts.append(part.number)
    return parts, rows


class LoadedPart:
    """What is loaded by one COPY."""

    def __init__(
        self, store: PostgresqlStore, job: str, default: Label, names: Sequence[str]
    ) -> None:
        found = store.ask("begin_part", job=job)
        if not found:
            raise JobIsOver("the job ended before this attempt did: its rows are not needed")
        self.number, at, self._first_id, kind_queues = found[0]
        self.work: Counter[Work] = Counter()
        self._store, self._job, self._default = store, job, default
        self._at = (at - _EPOCH) // timedelta(microseconds=1)
        self._kind_queues = frozenset(kind_queues)
        self._keyed = "key" in names
        given = {"delay": "due", "at": "due", "expires_in": "expires_at"}
        self._own = [name for name in _OWN if name in {given.get(n, n) for n in names}]
        labelled = [
            field
            for field, value, known in zip(Label._fields, default, _LEFT_OUT, strict=True)
            if field in names or value != known
        ]
        timed = not {"due", "expires_at"}.isdisjoint(self._own)
        times = [name for name in _TIMES if name not in self._own] if timed else []
        by_kind = ["by_kind"] if kind_queues else []
        self._shared = ["channel_id", *labelled, "part", *by_kind, *times]
        self.columns = [*self._shared, *self._own]
        self._heads: dict[Label, bytes] = {}

    def encoded(self, batch: pa.RecordBatch) -> memoryview:
        """The rows, as COPY reads them. Rows of a channel are next to each other, in order, so that
        loading writes to few pages of an index. With keys all rows stay where they are: of two
        rows with one key the first is published."""
        labels, codes = labelled(batch, self._default)
        columns = self._columns(batch)
        self._count(labels, codes, columns.get("due"))
        heads = pa.array([self._head(label) for label in labels], pa.large_binary())
        if len(labels) == 1:
            return joined([heads[0], *row_fields(columns.values())])
        if not self._keyed:
            order = _by_channel(labels, codes)
            codes = codes.take(order)
            columns = {name: column.take(order) for name, column in columns.items()}
        return joined([heads.take(codes), *row_fields(columns.values())])

    def end(self) -> None:
        """All rows are loaded: says what the commit of the job must know of them."""
        work = list(self.work)
        kept = self._store.ask(
            "end_part",
            job=self._job,
            part=self.number,
            first_id=self._first_id,
            keyed=self._keyed,
            channel_ids=[channel_id(one.queue, one.channel).hex() for one in work],
            queues=[one.queue for one in work],
            channels=[one.channel for one in work],
            kinds=[one.kind for one in work],
            priorities=[one.priority for one in work],
            dues=[None if one.due is None else _moment(one.due) for one in work],
            by_kind=[one.queue in self._kind_queues for one in work],
            counts=[self.work[one] for one in work],
        )
        if not kept[0][0]:
            raise JobIsOver("the job ended before this attempt did: its rows are not needed")

    def _columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """What each row has for itself."""
        given = {name: batch[name] for name in batch.schema.names}
        if "at" in given:
            given["due"] = given["at"].fill_null(pa.scalar(self._at, pa.int64()).cast(_TIME))
        if "delay" in given:
            given["due"] = pc.add(given["delay"].fill_null(0), self._at).cast(_TIME)
        if "expires_in" in given:
            given["expires_at"] = pc.add(given["expires_in"], self._at).cast(_TIME)
        if "key_window" in given:
            given["key_window"] = as_interval(given["key_window"])
        return {name: given[name] for name in self._own}

    def _count(self, labels: list[Label], codes: pa.Array, due: pa.Array | None) -> None:
        if due is None:
            counted = pc.value_counts(codes).to_pylist()
            at = self._at if "due" in self._shared else None
            found = [(one["values"], at, one["counts"]) for one in counted]
        else:
            table = pa.table({"code": codes, "due": due.cast(pa.int64())})
            grouped = table.group_by(["code", "due"]).aggregate([([], "count_all")])
            columns = (grouped[name].to_pylist() for name in ("code", "due", "count_all"))
            found = list(zip(*columns, strict=True))
        for code, at, n in found:
            label = labels[code]
            self.work[Work(label.queue, label.channel, label.kind, label.priority, at)] += n

    def _head(self, label: Label) -> bytes:
        """The begin of a row with this label."""
        head = self._heads.get(label)
        if head is None:
            if len(self._heads) >= _MOST_WORK:
                self._heads.clear()
            head = self._heads[label] = self._encoded_head(label)
        return head

    def _encoded_head(self, label: Label) -> bytes:
        fields = {
            "channel_id": _field(channel_id(label.queue, label.channel)),
            **{name: _text(getattr(label, name)) for name in _TEXTS},
            "priority": struct.pack("!ih", 2, label.priority),
            "max_attempts": struct.pack("!ii", 4, label.max_attempts),
            "headers": _json(label.headers),
            "by_kind": _field(b"\1") if label.queue in self._kind_queues else _NULL,
            "part": struct.pack("!iq", 8, self.number),
            **dict.fromkeys(_TIMES, struct.pack("!iq", 8, self._at - PG_EPOCH)),
        }
        count = struct.pack("!h", len(self.columns))
        return count + b"".join(fields[name] for name in self._shared)


def labelled(batch: pa.RecordBatch, default: Label) -> tuple[list[Label], pa.Array]:
    """The labels of a batch, and for each row the number of its label."""
    labels: list[tuple[Any, ...]] = [()]
    codes: pa.Array | None = None
    for name, value in default._asdict().items():
        if name not in batch.schema.names:
            labels = [(*label, value) for label in labels]
            continue
        column = pc.dictionary_encode(batch[name].fill_null(value))
        values = column.dictionary.to_pylist()
        if len(labels) == 1:
            labels, codes = [(*labels[0], value) for value in values], column.indices
        elif len(values) == 1:
            labels = [(*label, values[0]) for label in labels]
        else:
            labels, codes = _paired(labels, codes, values, column.indices)
    if codes is None:
        codes = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
    return [Label(*label) for label in labels], codes


def _paired(
    labels: list[tuple[Any, ...]], codes: pa.Array, values: list[Any], indices: pa.Array
) -> tuple[list[tuple[Any, ...]], pa.Array]:
    """The labels with one more value each, as far as they occur."""
    both = pc.add(pc.multiply(codes.cast(pa.int64()), len(values)), indices)
    pairs = pc.dictionary_encode(both)
    found = (divmod(pair, len(values)) for pair in pairs.dictionary.to_pylist())
    return [(*labels[before], values[n]) for before, n in found], pairs.indices


def _by_channel(labels: list[Label], codes: pa.Array) -> pa.Array:
    """The order of rows in which those of a channel are next to each other."""
    ids = [(channel_id(label.queue, label.channel), n) for n, label in enumerate(labels)]
    ranks = [0] * len(labels)
    for rank, (_, n) in enumerate(sorted(ids)):
        ranks[n] = rank
    return pc.sort_indices(pa.array(ranks, pa.int32()).take(codes))


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _text(value: str) -> bytes:
    return _field(value.encode())


def _json(headers: str) -> bytes:
    return _field(b"\1" + headers.encode()) if headers and json.loads(headers) else _NULL


def _field(value: bytes) -> bytes:
    return struct.pack("!i", len(value)) + value
