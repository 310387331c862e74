"""What the catalog of PostgreSQL says a role may do: its effective rights, inherited ones too."""

from typing import NamedTuple

import psycopg

FUNCTIONS = (
    "select p.proname, r.rolname, has_function_privilege(r.oid, p.oid, 'execute') from pg_proc p "
    "join pg_namespace n on n.oid = p.pronamespace, pg_roles r "
    "where n.nspname = %s and r.rolname = any(%s)"
)
# A sequence's and a table's rights are asked by different functions.
RELATIONS = (
    "select c.relname, r.rolname, w.what, case "
    "when c.relkind = 'S' then w.what in ('select', 'update', 'usage') "
    "  and has_sequence_privilege(r.oid, c.oid, w.what) "
    "when w.what = 'usage' then false "
    "when w.what in ('select', 'insert', 'update', 'references') "
    "  then has_any_column_privilege(r.oid, c.oid, w.what) "
    "else has_table_privilege(r.oid, c.oid, w.what) end "
    "from pg_class c join pg_namespace n on n.oid = c.relnamespace, pg_roles r, "
    "unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger', "
    "'usage']) w(what) where n.nspname = %s and r.rolname = any(%s) "
    "and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') "
    # A partition has the rights that its day gives it: none, like its parent.
    "and not c.relispartition"
)
PARTITIONS = (
    "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace, pg_roles r "
    "where n.nspname = %s and r.rolname = any(%s) and c.relispartition "
    "and has_table_privilege(r.oid, c.oid, 'select, insert, update, delete')"
)
COLUMNS = (
    "select c.relname, a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid "
    "join pg_namespace n on n.oid = c.relnamespace, pg_roles r "
    "where n.nspname = %s and r.rolname = any(%s) and c.relkind in ('r', 'p', 'v') "
    "and a.attnum > 0 and not a.attisdropped and has_column_privilege(r.oid, c.oid, a.attnum, %s)"
)


class Right(NamedTuple):
    """A thing, and a verb of SQL that may be said of it."""

    name: str
    what: str


class Catalog:
    """``roles`` by their short names, which are what a test's tables are written with."""

    def __init__(self, url: str, schema: str, roles: dict[str, str]) -> None:
        self._url = url
        self._schema = schema
        self._roles = roles
        self._short = {full: short for short, full in roles.items()}

    def functions(self) -> dict[str, set[str]]:
        """Every function of the schema, and who may call it (all its overloads together)."""
        found: dict[str, set[str]] = {}
        for name, role, allowed in self._rows(FUNCTIONS, list(self._roles.values())):
            found.setdefault(name, set()).update({self._short[role]} if allowed else ())
        return found

    def relations(self) -> dict[str, dict[str, set[str]]]:
        """Every table, view and sequence, and by role what it may do with (a part of) it."""
        found: dict[str, dict[str, set[str]]] = {}
        for name, role, what, allowed in self._rows(RELATIONS, list(self._roles.values())):
            rights = found.setdefault(name, {})
            if allowed:
                rights.setdefault(self._short[role], set()).add(what)
        return found

    def open_partitions(self) -> list[str]:
        return [name for (name,) in self._rows(PARTITIONS, list(self._roles.values()))]

    def columns(self, role: str, what: str) -> set[Right]:
        rows = self._rows(COLUMNS, [self._roles[role]], what)
        return {Right(relation, column) for relation, column in rows}

    def _rows(self, text: str, *params: object) -> list[tuple[str, ...]]:
        with psycopg.connect(self._url) as connection:
            return connection.execute(text.encode(), [self._schema, *params]).fetchall()
