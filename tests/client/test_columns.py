"""Lists as psycopg parameters: plain columns take a shortcut, and mean what they meant before."""

from typing import Any

import psycopg
import pytest

from laneway.drivers.psycopg.connection import ColumnDumper

PLAIN = [
    ("bytea[]", [b"", b"\x00\xff", b"x" * 3000]),
    ("text[]", ["", "ä", "日本", "'\"\\{}"]),
    ("bigint[]", [0, -1, 2**63 - 1, -(2**63)]),
    ("integer[]", [1, 2]),
    ("smallint[]", [9]),
]
OTHERS = [
    ("text[]", ["a", None]),
    ("bytea[]", [None, b"a"]),
    ("bigint[]", [None, None]),
    ("boolean[]", [True, False]),
    ("numeric[]", [2**64, 1]),
    ("text[]", []),
]


@pytest.mark.parametrize(("type_", "items"), PLAIN + OTHERS)
def test_a_list_arrives_as_it_was_sent(database: str, type_: str, items: list[Any]) -> None:
    with psycopg.connect(database) as connection:
        connection.adapters.register_dumper(list, ColumnDumper)
        for _ in range(2):  # the second comes from the cache of dumpers
            row = connection.execute(f"select cast(%b as {type_})".encode(), [items]).fetchone()
            assert row is not None
            assert row[0] == items


def test_columns_with_and_without_gaps_do_not_share_a_dumper(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.adapters.register_dumper(list, ColumnDumper)
        for items in (["a", "b"], ["a", None], ["a", "b"]):
            row = connection.execute("select cast(%b as text[])", [items]).fetchone()
            assert row == (items,)
