"""Install and upgrade the schema: one folder per migration under ``migrations/``.

In a folder, tables come first, then functions, then views.
"""

from functools import cache
from importlib.resources import files

from laneway.engines.migration_files import Migration, check_known, read_migrations
from laneway.errors import SchemaMissing
from laneway.names import check_schema
from laneway.plan import Plan, Statement

from .base import PostgresqlBase
from .render import render, statement, template
from .roles import role_names, roles_sql


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the schema still called ``"laneway"``."""
    return read_migrations(files(__package__) / "migrations")


def install_sql(schema: str = "laneway") -> str:
    """The SQL that installs Laneway into ``schema``, for a migration tool or for review.

    Run it once, in one transaction.

    >>> print(install_sql("jobs"))
    """
    return upgrade_sql(0, schema)


def upgrade_sql(version: int, schema: str = "laneway") -> str:
    """The SQL that brings a schema of ``version`` up to this version's, empty if it is there.

    Run it once, in one transaction.

    >>> print(upgrade_sql(1, "jobs"))
    """
    check_schema(schema)
    missing = [m for m in migrations() if m.number > version]
    if not missing:
        return ""
    parts = [_rendered(migration, schema) for migration in missing]
    return "\n\n".join([*parts, statement("partition", schema) + ";\n"])


class PostgresqlSchema(PostgresqlBase):
    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self) -> Plan[None]:
        """Safe to repeat, and for two processes at the same time. Needs one transaction."""
        yield self._migration_lock()
        applied = yield from self._applied()
        yield from self._apply(applied or 0)

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        yield self._migration_lock()
        yield from self.schema_version()
        yield Statement(roles_sql(self.schema, prefix), script=True, long=True)
        return role_names(self.schema if prefix is None else prefix)

    def upgrade(self) -> Plan[None]:
        yield self._migration_lock()
        yield from self._apply((yield from self.schema_version()))

    def uninstall(self) -> Plan[None]:
        yield self._migration_lock()
        yield from self.schema_version()
        yield Statement(statement("uninstall", self.schema), script=True, long=True)

    def _migration_lock(self) -> Statement:
        return self._statement("migration_lock", self.schema)._replace(long=True)

    def schema_version(self) -> Plan[int]:
        applied = yield from self._applied()
        if applied is None:
            raise SchemaMissing(
                f"Laneway is not installed in schema {self.schema!r}: "
                "run queue.install() or laneway install"
            )
        return applied

    def _applied(self) -> Plan[int | None]:
        rows = yield self._statement("migration_exists", self.schema)
        if not rows[0][0]:
            return None
        rows = yield self._statement("migration_number")
        return int(rows[0][0])

    def _apply(self, version: int) -> Plan[None]:
        check_known(version, self.newest_version, self.schema)
        script = upgrade_sql(version, self.schema)
        if script:
            yield Statement(script, script=True, long=True)
            yield from self._grant_again()

    def _grant_again(self) -> Plan[None]:
        """A function that was dropped and created again has lost its grants."""
        rows = yield self._statement("roles_prefix", self.schema)
        for row in rows:
            yield Statement(roles_sql(self.schema, row[0]), script=True, long=True)


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))
