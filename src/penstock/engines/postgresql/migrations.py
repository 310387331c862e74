"""Numbered migrations: one folder each under ``sql/``, tables first, then functions, then views."""

from functools import cache

from penstock.engines.numbered import Migration, check_known, read_migrations
from penstock.errors import SchemaMissing
from penstock.names import check_schema
from penstock.plan import Plan, Statement

from .base import Base
from .roles import role_names, roles_sql
from .sqltext import FOLDER, query, render, template


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order, with the schema still called ``"penstock"``."""
    return read_migrations(FOLDER / "sql")


def install_sql(schema: str = "penstock") -> str:
    """The SQL that installs Penstock into ``schema``, for a migration tool or a careful reader.

    Run it once, in one transaction.

    >>> print(install_sql("jobs"))
    """
    return upgrade_sql(0, schema)


def upgrade_sql(version: int, schema: str = "penstock") -> str:
    """The SQL that brings a schema of ``version`` up to this version's, empty if it is there.

    Run it once, in one transaction.

    >>> print(upgrade_sql(1, "jobs"))
    """
    check_schema(schema)
    missing = [m for m in migrations() if m.number > version]
    if not missing:
        return ""
    parts = [_rendered(migration, schema) for migration in missing]
    return "\n\n".join([*parts, query("partition", schema) + ";\n"])


class Migrations(Base):
    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self) -> Plan[None]:
        """Safe to repeat, and when two processes do it at once. Needs one transaction."""
        yield self._say("migration_lock", self.schema)
        applied = yield from self._applied()
        yield from self._apply(applied or 0)

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        yield self._say("migration_lock", self.schema)
        yield from self.schema_version()
        yield Statement(roles_sql(self.schema, prefix), script=True)
        return role_names(self.schema if prefix is None else prefix)

    def upgrade(self) -> Plan[None]:
        yield self._say("migration_lock", self.schema)
        yield from self._apply((yield from self.schema_version()))

    def uninstall(self) -> Plan[None]:
        yield self._say("migration_lock", self.schema)
        yield from self.schema_version()
        yield Statement(query("uninstall", self.schema), script=True)

    def schema_version(self) -> Plan[int]:
        applied = yield from self._applied()
        if applied is None:
            raise SchemaMissing(
                f"Penstock is not installed in schema {self.schema!r}: "
                "run queue.install() or penstock install"
            )
        return applied

    def _applied(self) -> Plan[int | None]:
        rows = yield self._say("migration_exists", self.schema)
        if not rows[0][0]:
            return None
        rows = yield self._say("migration_number")
        return int(rows[0][0])

    def _apply(self, version: int) -> Plan[None]:
        check_known(version, self.newest_version, self.schema)
        script = upgrade_sql(version, self.schema)
        if script:
            yield Statement(script, script=True)
            yield from self._restate_roles()

    def _restate_roles(self) -> Plan[None]:
        """A function that is created anew loses what install_roles gave it."""
        rows = yield self._say("roles_prefix", self.schema)
        for row in rows:
            yield Statement(roles_sql(self.schema, row[0]), script=True)


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))
