"""install, upgrade and uninstall: numbered migrations, one folder each; repair puts back what was
dropped."""

from collections.abc import Callable
from functools import cache

from laneway.engines.drift import (
    BETWEEN,
    Found,
    Kind,
    Part,
    ShapeLook,
    missing,
    parts_of,
    repaired,
    squeezed,
    table_parts,
)
from laneway.engines.migration_files import Migration, between, check_known, read_migrations
from laneway.errors import InvalidOption, SchemaMissing
from laneway.inspection import Repair
from laneway.plan import Plan, Statement

from .base import MIGRATIONS, STATEMENTS, SqliteSql, checked_schema, render, statement


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the default prefix ``laneway_``."""
    return read_migrations(MIGRATIONS)


def install_sql(schema: str = "laneway", version: int | None = None) -> str:
    """The SQL that installs Laneway, its tables prefixed by ``schema``."""
    return upgrade_sql(0, schema, version)


def upgrade_sql(since: int, schema: str = "laneway", version: int | None = None) -> str:
    """The same for tables of version ``since``; empty if that is the version."""
    checked_schema(schema)
    return "\n\n".join(_rendered(m, schema) for m in between(migrations(), since, version))


def uninstall_sql(schema: str = "laneway") -> str:
    """The SQL that removes Laneway's tables with everything in them."""
    checked_schema(schema)
    return statement("uninstall", schema) + ";\n"


class SqliteSchema:
    """install, upgrade and uninstall: numbered migrations, one folder each under
    ``migrations/``."""

    def __init__(self, sql: SqliteSql) -> None:
        self._sql = sql

    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self, version: int | None = None) -> Plan[None]:
        """Safe to repeat, also by two processes at once. Needs one transaction."""
        applied = yield from self.applied(self._sql.statement)
        yield from self._apply(applied or 0, version)

    def upgrade(self, version: int | None = None) -> Plan[None]:
        yield from self._apply((yield from self._version(self._sql.statement)), version)

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        raise InvalidOption("SQLite has no roles: whoever can write the file can do everything")

    def uninstall(self) -> Plan[None]:
        yield from self._version(self._sql.statement)
        yield Statement(statement("uninstall", self._sql.schema), script=True)

    def takes_writes(self) -> Plan[bool]:
        yield from ()
        return True

    def schema_version(self) -> Plan[int]:
        return (yield from self._version(self._sql.read_outside))

    def _version(self, ask: Callable[..., Statement]) -> Plan[int]:
        applied = yield from self.applied(ask)
        if applied is None:
            raise SchemaMissing(
                f"Laneway is not installed under the prefix {self._sql.schema!r}: "
                "run queue.install() or laneway install"
            )
        return applied

    def applied(self, ask: Callable[..., Statement]) -> Plan[int | None]:
        rows = yield ask("migration_exists", f"{self._sql.schema}_migration")
        if not rows[0][0]:
            return None
        rows = yield ask("migration_number")
        return int(rows[0][0])

    def _apply(self, applied: int, version: int | None) -> Plan[None]:
        check_known(applied, self.newest_version, self._sql.schema)
        script = upgrade_sql(applied, self._sql.schema, version)
        if script:
            yield Statement(script, script=True)


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), STATEMENTS["migration_note"])


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f'"laneway_{table}"')
    return {
        key: _possible(part).rendered(lambda sql: render(sql, schema))
        for key, part in parts.items()
    }


def _possible(part: Part) -> Part:
    """SQLite changes no column and adds no check to a table that is there."""
    if part.kind == "check":
        return part._replace(sql=None)
    return part._replace(mend=None if part.kind == "column" else part.sql)


class SqliteRepair(ShapeLook, SqliteSchema):
    """repair: what somebody dropped or changed is put back as the migrations have it."""

    def repair(self) -> Plan[list[Repair]]:
        found = yield from self._found()
        done = []
        for part in self._lost(found):
            if part.sql is not None and (part.kind, part.name) in found:
                yield Statement(f'drop {part.kind} "{self._sql.schema}_{part.name}"')
            if part.sql is not None:
                yield Statement(part.sql)
            done.append(repaired(part, found))
        return done

    def _lost(self, found: Found) -> list[Part]:
        return missing(shape(self._sql.schema), found, _same)

    def _found(self) -> Plan[Found]:
        prefix = f"{self._sql.schema}_"
        rows = yield self._sql.read_outside("shape", prefix, len(prefix))
        found: dict[tuple[str, str], str | None] = {}
        for kind, owner, column, key, sql in rows:
            name = owner.removeprefix(prefix)
            if kind == "table":
                found |= _inside(name, sql)
            if kind != "column" or (kind, f"{name}.{column}") not in found:
                found[kind, f"{name}.{column}" if kind == "column" else name] = sql
            if key:
                found["primary key", name] = None
        return found


def _inside(table: str, sql: str) -> dict[tuple[str, str], str | None]:
    """The columns and checks of a table, as it was created and altered."""
    parts = [*table_parts(sql[sql.index("(") :], table, table)] if "(" in sql else []
    found: dict[tuple[str, str], str | None] = {
        (part.kind, part.name): part.text for part in parts if part.kind == "column"
    }
    found["check", table] = BETWEEN.join(part.text or "" for part in parts if part.kind == "check")
    return found


def _same(part: Part, found: str | None) -> bool:
    """SQLite keeps what it was given, from the name on."""
    if part.text is None or found is None or part.kind in ("table", "index"):
        return True
    ours, theirs = squeezed(part.text), squeezed(found)
    return ours == theirs or ours.partition(" ")[2] == theirs.partition(" ")[2]
