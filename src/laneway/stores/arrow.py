"""Rows of PostgreSQL as Arrow batches: by ADBC if it is installed, else by COPY."""

import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyarrow.csv

from .postgresql import PostgresqlStore, open_postgresql
from .store import StoreAddress, translated_errors

_BLOCK = 4 * 2**20
_BINARY_BLOCK = 64 * 2**20  # a row must fit into a block, and bytes are twice as long as text
_ARROW_TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def fetch(
    address: StoreAddress, query: str, columns: dict[str, str], wanted: pa.Schema, transport: str
) -> Iterator[pa.RecordBatch]:
    """The rows of a complete query. ``columns`` are its columns with Spark's names of their types;
    ``wanted`` is the schema of the batches."""
    with translated_errors(PostgresqlStore, address):
        read = _by_adbc if uses_adbc(transport) else _by_copy
        for batch in read(address, query, columns):
            yield _fitted(batch, wanted)


def uses_adbc(transport: str) -> bool:
    return transport == "adbc" or (
        transport == "auto" and find_spec("adbc_driver_postgresql") is not None
    )


def _fitted(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    arrays = [array.cast(field.type) for array, field in zip(batch.columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _by_adbc(
    address: StoreAddress, query: str, columns: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address.url) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        yield from cursor.fetch_record_batch()


def _by_copy(
    address: StoreAddress, query: str, columns: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    with open_postgresql(address, __package__) as store, store.transaction():
        store.tell("copy_settings")
        with store.copy("copy_out", query=query) as copy:
            source = io.BufferedReader(_CopyFile(copy), _BLOCK)
            if source.peek(1):
                yield from _parsed(source, columns)


def _parsed(
    source: "io.BufferedReader[_CopyFile]", columns: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    binary = [name for name, kind in columns.items() if kind == "binary"]
    reader = pyarrow.csv.open_csv(
        source,
        pyarrow.csv.ReadOptions(
            column_names=list(columns), block_size=_BINARY_BLOCK if binary else _BLOCK
        ),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(
            column_types={name: _ARROW_TYPES[kind] for name, kind in columns.items()},
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield _with_bytes(batch, binary)


def _with_bytes(batch: pa.RecordBatch, binary: list[str]) -> pa.RecordBatch:
    for name in binary:
        place = batch.schema.get_field_index(name)
        values = [None if v is None else bytes.fromhex(v[2:]) for v in batch[name].to_pylist()]
        batch = batch.set_column(place, name, pa.array(values, pa.binary()))
    return batch


class _CopyFile(io.RawIOBase):
    """The output of COPY as a file."""

    def __init__(self, copy: Any) -> None:
        self._copy = copy
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(self._copy.read())
        size = min(len(self._rest), len(buffer))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
