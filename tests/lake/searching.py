"""Every column of every table, and every file of a folder, searched for a text."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pymysql
from psycopg import sql

from laneway.drivers.mysql.url import connect_options, database_of
from laneway.drivers.sqlite.url import read_url
from tests.place import Place


def in_tables(place: Place, text: str) -> dict[str, int]:
    """How many values of which columns of our tables hold it, as text or as bytes."""
    search = {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}
    return search[place.url.partition(":")[0]](place, text)


def _postgresql(place: Place, text: str) -> dict[str, int]:
    found = {}
    with psycopg.connect(place.url) as connection:
        columns = connection.execute(
            "select table_name, column_name from information_schema.columns join "
            "information_schema.tables using (table_schema, table_name) "
            "where table_schema = %s and table_type = 'BASE TABLE'",
            [place.schema],
        ).fetchall()
        for table, column in columns:
            # Bytes are shown in hexadecimal.
            query = sql.SQL("select count(*) from {} t where t.{}::text like any(%s)").format(
                sql.Identifier(place.schema, table), sql.Identifier(column)
            )
            forms = [f"%{text}%", f"%{text.encode().hex()}%"]
            ((count,),) = connection.execute(query, [forms]).fetchall()
            if count:
                found[f"{table}.{column}"] = count
    return found


def _mysql(place: Place, text: str) -> dict[str, int]:
    found = {}
    options = connect_options(place.url)
    with (
        closing(pymysql.connect(database=database_of(place.url), **options)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "select c.table_name, c.column_name from information_schema.columns c join "
            "information_schema.tables t using (table_schema, table_name) where "
            "c.table_schema = database() and t.table_type = 'BASE TABLE'"
        )
        for table, column in cursor.fetchall():
            cursor.execute(
                f"select count(*) from `{table}` where instr(hex(`{column}`), %s)",  # noqa: S608
                [text.encode().hex().upper()],
            )
            ((count,),) = cursor.fetchall()
            if count:
                found[f"{table.removeprefix(place.schema + '_')}.{column}"] = count
    return found


def _sqlite(place: Place, text: str) -> dict[str, int]:
    found = {}
    with closing(sqlite3.connect(read_url(place.url).path)) as connection:
        columns = connection.execute(
            "select m.name, c.name from sqlite_master m, pragma_table_xinfo(m.name) c "
            "where m.type = 'table'"
        ).fetchall()
        for table, column in columns:
            ((count,),) = connection.execute(
                f'select count(*) from "{table}" where instr(hex("{column}"), ?)',  # noqa: S608
                [text.encode().hex().upper()],
            ).fetchall()
            if count:
                found[f"{table.removeprefix(place.schema + '_')}.{column}"] = count
    return found


def in_files(folder: Path, text: str) -> list[str]:
    """The files that hold it in their name, their bytes or their rows."""
    wanted = text.encode()
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if text in path.name
        or (path.is_file() and (wanted in path.read_bytes() or _in_rows(path, text)))
    )


def _in_rows(path: Path, text: str) -> bool:
    return path.suffix == ".parquet" and text in str(pq.read_table(path).to_pylist())
