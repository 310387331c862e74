"""Frames of many partitions: their staging tables become few before they are moved.

A transaction holds a lock for each table that it reads or drops, and a server has room for some
thousands in all.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from psycopg import Connection, sql

from .connections import ask, connected
from .options import Address
from .staged import Staged
from .statements import statement

AT_ONCE = 200
T = TypeVar("T")


def gathered(address: Address, parts: Sequence[Staged]) -> list[Staged]:
    """The same rows in at most ``AT_ONCE`` tables; each portion moves in a transaction of its own.
    What a driver that dies in between leaves is swept like any other staging table."""
    found = list(parts)
    while len(found) > AT_ONCE:
        found = [_one_of(address, portion) for portion in _portions(found)]
    return found


def in_portions(drop: Callable[[], int]) -> None:
    """Calls it until there is less to drop than it drops at a time."""
    while drop() >= AT_ONCE:
        pass


def unique(attempt: int) -> int:
    """A number that no driver gave before: those of attempts begin anew with each."""
    return attempt << 32 | secrets.randbits(32)


def _portions(parts: list[T]) -> list[list[T]]:
    return [parts[n : n + AT_ONCE] for n in range(0, len(parts), AT_ONCE)]


def _one_of(address: Address, parts: list[Staged]) -> Staged:
    first, names = parts[0], [str(part.table) for part in parts]
    with connected(address) as connection:
        blanks = {"schema": address.schema, "job": first.job, "attempt": unique(0)}
        table: str = ask(connection, "stage", **blanks)[0][0]
        _tell(connection, address, "gather", table=table, rows=_rows(address, names))
        _tell(connection, address, "drop_staged", tables=_tables(address, names))
        _tell(connection, address, "forget_staged", names=names)
    return replace(first, table=table, rows=sum(part.rows for part in parts))


def _tell(connection: Connection[Any], address: Address, name: str, **blanks: Any) -> None:
    connection.execute(statement(connection, name, schema=address.schema, **blanks).encode())


def _rows(address: Address, names: list[str]) -> sql.Composable:
    each = [sql.SQL("select * from {}").format(table) for table in _identifiers(address, names)]
    return sql.SQL(" union all ").join(each)


def _tables(address: Address, names: list[str]) -> sql.Composable:
    return sql.SQL(", ").join(_identifiers(address, names))


def _identifiers(address: Address, names: list[str]) -> list[sql.Identifier]:
    return [sql.Identifier(address.schema, name) for name in names]
