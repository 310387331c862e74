"""Numbered migrations: one folder each under ``sql/``, tables first, then views."""

from collections.abc import Callable
from functools import cache

from penstock.engines.numbered import Migration, check_known, read_migrations
from penstock.errors import InvalidOption, SchemaMissing
from penstock.plan import Plan, Statement

from .base import Base
from .sqltext import FOLDER, checked_schema, query, render, template


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order, with the tables still called ``"penstock_…"``."""
    return read_migrations(FOLDER / "sql")


def install_sql(schema: str = "penstock") -> str:
    """The SQL that installs Penstock, its tables prefixed by ``schema``.

    Run it once, in one transaction.
    """
    return upgrade_sql(0, schema)


def upgrade_sql(version: int, schema: str = "penstock") -> str:
    """The SQL that brings tables of ``version`` up to this version's, empty if they are there."""
    checked_schema(schema)
    return "\n\n".join(_rendered(m, schema) for m in migrations() if m.number > version)


class Migrations(Base):
    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self) -> Plan[None]:
        """Safe to repeat, and when two processes do it at once. Needs one transaction."""
        applied = yield from self._applied(self._say)
        yield from self._apply(applied or 0)

    def upgrade(self) -> Plan[None]:
        yield from self._apply((yield from self._version(self._say)))

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        raise InvalidOption("SQLite has no roles: whoever may write the file may do everything")

    def uninstall(self) -> Plan[None]:
        yield from self._version(self._say)
        yield Statement(query("uninstall", self.schema), script=True)

    def schema_version(self) -> Plan[int]:
        return (yield from self._version(self._look))

    def _version(self, ask: Callable[..., Statement]) -> Plan[int]:
        applied = yield from self._applied(ask)
        if applied is None:
            raise SchemaMissing(
                f"Penstock is not installed under the prefix {self.schema!r}: "
                "run queue.install() or penstock install"
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
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))
