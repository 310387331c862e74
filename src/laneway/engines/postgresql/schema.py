"""Install and upgrade the schema, its roles, and repair: one folder per migration under
``migrations/``."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from laneway.engines.drift import (
    BETWEEN,
    Found,
    Kind,
    Part,
    ShapeLook,
    missing,
    parts_of,
    repaired,
)
from laneway.engines.migration_files import Migration, between, check_known, read_migrations
from laneway.errors import InvalidName, SchemaMissing
from laneway.inspection import Repair
from laneway.names import SCHEMA_BYTES, check_schema
from laneway.plan import Plan, Statement
from laneway.sqlfile import dollar_quoted, pieces

from .base import PostgresqlSql, quoted, render, statement, template

# Database roles: producer, consumer, viewer, admin.

ROLES = ("producer", "consumer", "viewer", "admin")


def role_names(prefix: str) -> list[str]:
    """PostgreSQL would silently cut a longer name, and then grant to another role."""
    names = [f"{check_schema(prefix)}_{role}" for role in ROLES]
    longest = max(len(name.encode()) for name in names)
    if longest > SCHEMA_BYTES:
        raise InvalidName(
            f"the role prefix {prefix!r} makes names of {longest} bytes, "
            f"{SCHEMA_BYTES} are allowed: choose a shorter one"
        )
    return names


def roles_sql(schema: str = "laneway", prefix: str | None = None) -> str:
    """The SQL that creates the roles and states their rights; ``prefix`` is the schema by default.

    Run it as the owner of the schema, in one transaction, after install and after every upgrade.

    >>> print(roles_sql("jobs"))
    """
    check_schema(schema)
    wanted = schema if prefix is None else prefix
    role_names(wanted)
    return render(template("roles"), schema, wanted)


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the schema still called ``"laneway"``."""
    return read_migrations(files(__package__) / "migrations")


def install_sql(schema: str = "laneway", version: int | None = None) -> str:
    """The SQL that installs Laneway into ``schema``, for a migration tool or for review: one
    statement for each migration, which does nothing if it was applied."""
    return upgrade_sql(0, schema, version)


def upgrade_sql(since: int, schema: str = "laneway", version: int | None = None) -> str:
    """The same for a schema of version ``since``; empty if that is the version."""
    check_schema(schema)
    return "\n\n".join(_guarded(one, schema) for one in between(migrations(), since, version))


def uninstall_sql(schema: str = "laneway") -> str:
    """The SQL that removes Laneway with everything in it."""
    check_schema(schema)
    return statement("uninstall", schema) + ";\n"


def _guarded(migration: Migration, schema: str) -> str:
    """One statement, because drivers that prepare take no more."""
    script = dollar_quoted("\n" + _script([migration], schema), "script")
    name = "'" + schema.replace("'", "''") + "'"
    values = {"1": str(migration.number), "2": name, "3": script}
    # Cut first: a schema's name may look like a parameter.
    filled = (
        render(piece.text, schema) + values.get(piece.parameter or "", "")
        for piece in pieces(template("guarded"))
    )
    block = dollar_quoted(f"\n{''.join(filled)}\n", "laneway")
    return f"-- Laneway, migration {migration.number:04}: {migration.name}\ndo {block};\n"


def _script(missing: Sequence[Migration], schema: str) -> str:
    if not missing:
        return ""
    parts = [_rendered(migration, schema) for migration in missing]
    return "\n\n".join([*parts, statement("partition", schema) + ";\n"])


class PostgresqlSchema:
    def __init__(self, sql: PostgresqlSql) -> None:
        self._sql = sql

    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self, version: int | None = None) -> Plan[None]:
        """Safe to repeat, and for two processes at the same time. Needs one transaction."""
        yield self._migration_lock()
        applied = yield from self.applied()
        yield from self._apply(applied or 0, version)

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        yield self._migration_lock()
        yield from self.schema_version()
        yield Statement(roles_sql(self._sql.schema, prefix), script=True, long=True)
        return role_names(self._sql.schema if prefix is None else prefix)

    def upgrade(self, version: int | None = None) -> Plan[None]:
        yield self._migration_lock()
        yield from self._apply((yield from self.schema_version()), version)

    def uninstall(self) -> Plan[None]:
        yield self._migration_lock()
        yield from self.schema_version()
        yield Statement(statement("uninstall", self._sql.schema), script=True, long=True)

    def _migration_lock(self) -> Statement:
        return self._sql.statement("migration_lock", self._sql.schema)._replace(long=True)

    def takes_writes(self) -> Plan[bool]:
        ((answer,),) = yield self._sql.statement("takes_writes")
        return bool(answer)

    def schema_version(self) -> Plan[int]:
        applied = yield from self.applied()
        if applied is None:
            raise SchemaMissing(
                f"Laneway is not installed in schema {self._sql.schema!r}: "
                "run queue.install() or laneway install"
            )
        return applied

    def applied(self) -> Plan[int | None]:
        rows = yield self._sql.statement("migration_exists", self._sql.schema)
        if not rows[0][0]:
            return None
        rows = yield self._sql.statement("migration_number")
        return int(rows[0][0])

    def _apply(self, applied: int, version: int | None) -> Plan[None]:
        check_known(applied, self.newest_version, self._sql.schema)
        script = _script(between(migrations(), applied, version), self._sql.schema)
        if script:
            yield Statement(script, script=True, long=True)
            yield from self._grant_again()

    def _grant_again(self) -> Plan[None]:
        """A function that was dropped and created again has lost its grants."""
        rows = yield self._sql.statement("roles_prefix", self._sql.schema)
        for row in rows:
            yield Statement(roles_sql(self._sql.schema, row[0]), script=True, long=True)


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))


_PARTITIONED = ("history",)  # which CONCURRENTLY does not know


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f'"laneway".{table}')
    return {key: part.rendered(lambda text: render(text, schema)) for key, part in parts.items()}


class PostgresqlRepair(ShapeLook, PostgresqlSchema):
    """repair: what somebody dropped or changed is put back as the migrations have it."""

    def repair(self) -> Plan[list[Repair]]:
        """One statement after the other, each by itself: an index is built without locking out
        those who write."""
        found = yield from self._found()
        done = []
        for part in self._lost(found):
            for sql in self._putting_back(part):
                yield Statement(sql, script=True, long=True, outside=True)
            done.append(repaired(part, found))
        if done:
            yield from self._grant_again()
        return done

    def _lost(self, found: Found) -> list[Part]:
        return missing(shape(self._sql.schema), found)

    def _putting_back(self, part: Part) -> Iterator[str]:
        if part.sql is None:
            return
        if part.kind != "index" or part.table in _PARTITIONED:
            yield part.sql
            return
        # One that is there, but not valid, was left by a build that failed.
        yield f"drop index concurrently if exists {quoted(self._sql.schema)}.{quoted(part.name)}"
        yield re.sub(r"\bindex\b", "index concurrently", part.sql, count=1)

    def _found(self) -> Plan[Found]:
        rows = yield self._sql.statement("shape", self._sql.schema)
        found: dict[tuple[str, str], str | None] = {}
        for kind, name, body in rows:
            key = str(kind), str(name)
            found[key] = body if found.get(key) is None else f"{found[key]}{BETWEEN}{body}"
        return found
