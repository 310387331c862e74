"""What can be read: columns with their Spark types, and the names of the statements."""

from collections import Counter
from typing import NamedTuple

from pyspark.sql.types import StructType

from laneway.errors import InvalidOption

_MESSAGE = (
    "id bigint, queue string, channel string, kind string, key string, priority smallint, "
    "published_at timestamp, first_published_at timestamp, attempt bigint, max_attempts int, "
    "content_type string, headers string, payload_size bigint, payload binary"
)


class ReadableTable(NamedTuple):
    """``rows``, ``cuts`` and ``filters`` name statements: the rows of a partition, where one ends,
    and the options as a condition."""

    columns: str
    rows: str
    cuts: str
    filters: str
    rows_per_partition: int


TABLES = {
    "history": ReadableTable(
        "id bigint, xid bigint, message_id bigint, queue string, channel string, kind string, "
        "priority smallint, attempt bigint, fence bigint, worker string, outcome string, "
        "reason string, error_type string, error string, first_published_at timestamp, "
        "published_at timestamp, due timestamp, claimed_at timestamp, ended_at timestamp, "
        "payload_size bigint, terminal boolean, dead boolean",
        "history_rows",
        "history_cuts",
        "history_filters",
        250_000,
    ),
    "messages": ReadableTable(
        f"{_MESSAGE}, due timestamp, expires_at timestamp, state string, fence bigint, "
        "worker string, claimed_at timestamp, until timestamp",
        "message_rows",
        "message_cuts",
        "message_filters",
        100_000,
    ),
    "dead_letters": ReadableTable(
        f"{_MESSAGE}, died_at timestamp, reason string, error_type string, error string",
        "dead_letter_rows",
        "dead_letter_cuts",
        "dead_letter_filters",
        100_000,
    ),
    "claims": ReadableTable(
        f"{_MESSAGE}, due timestamp, expires_at timestamp, fence bigint, claimed_at timestamp, "
        "state_type string, state binary",
        "claim_rows",
        "claim_cuts",
        "",
        2_500,
    ),
}


def chosen(wanted: StructType, table: str) -> list[str]:
    """The columns of the user's schema, which become the select list; refuses unknown ones."""
    known = column_types(table)
    unknown = [name for name in wanted.fieldNames() if name not in known]
    if unknown:
        raise InvalidOption(f"{table} has no column {unknown[0]!r}: it has {', '.join(known)}")
    twice = [name for name, n in Counter(wanted.fieldNames()).items() if n > 1]
    if twice:
        raise InvalidOption(f"the schema has the column {twice[0]!r} twice: name it once")
    return wanted.fieldNames()


def column_types(table: str) -> dict[str, str]:
    """Each column's type as Spark's DDL writes it."""
    columns = TABLES[table].columns.split(", ")
    return {name: kind for name, _, kind in (column.partition(" ") for column in columns)}
