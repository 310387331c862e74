"""install, upgrade and uninstall: numbered migrations, one folder each under ``migrations/``."""

from collections.abc import Callable
from functools import cache

from laneway.engines.migration_files import Migration, check_known, read_migrations
from laneway.errors import InvalidOption, SchemaMissing
from laneway.plan import Plan, Statement

from .base import SqliteBase
from .render import MIGRATIONS, STATEMENTS, checked_schema, render, statement


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the default prefix ``laneway_``."""
    return read_migrations(MIGRATIONS)


def install_sql(schema: str = "laneway") -> str:
    """The SQL that installs Laneway, its tables prefixed by ``schema``.

    Run it once, in one transaction.
    """
    return upgrade_sql(0, schema)


def upgrade_sql(version: int, schema: str = "laneway") -> str:
    """The SQL that upgrades tables of ``version`` to this version; empty if they are up to date."""
    checked_schema(schema)
    return "\n\n".join(_rendered(m, schema) for m in migrations() if m.number > version)


class SqliteSchema(SqliteBase):
    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self) -> Plan[None]:
        """Safe to repeat, also by two processes at once. Needs one transaction."""
        applied = yield from self._applied(self._statement)
        yield from self._apply(applied or 0)

    def upgrade(self) -> Plan[None]:
        yield from self._apply((yield from self._version(self._statement)))

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        raise InvalidOption("SQLite has no roles: whoever can write the file can do everything")

    def uninstall(self) -> Plan[None]:
        yield from self._version(self._statement)
        yield Statement(statement("uninstall", self.schema), script=True)

    def schema_version(self) -> Plan[int]:
        return (yield from self._version(self._read_outside))

    def _version(self, ask: Callable[..., Statement]) -> Plan[int]:
        applied = yield from self._applied(ask)
        if applied is None:
            raise SchemaMissing(
                f"Laneway is not installed under the prefix {self.schema!r}: "
                "run queue.install() or laneway install"
            )
        return applied

    def _applied(self, ask: Callable[..., Statement]) -> Plan[int | None]:
        rows = yield ask("migration_exists", f"{self.schema}_migration")
        if not rows[0][0]:
            return None
        rows = yield ask("migration_number")
        return int(rows[0][0])

    def _apply(self, version: int) -> Plan[None]:
        check_known(version, self.newest_version, self.schema)
        script = upgrade_sql(version, self.schema)
        if script:
            yield Statement(script, script=True)


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), STATEMENTS["migration_note"])
