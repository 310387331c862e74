"""Numbered migrations: one folder each under ``sql/``, tables first, then views.

MySQL commits every change of a table by itself. So each statement can be repeated, and the note
that a migration is done comes last: an install that broke off is simply run again.
"""

from functools import cache
from hashlib import sha256

from penstock.engines.numbered import Migration, check_known, read_migrations
from penstock.errors import DatabaseFailed, InvalidOption, PenstockError, SchemaMissing
from penstock.plan import Plan, Statement

from .base import Base
from .names import check_prefix
from .sqltext import FOLDER, render, template


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order, with the prefix still ``penstock``."""
    return read_migrations(FOLDER / "sql")


def install_sql(schema: str = "penstock") -> str:
    """The SQL that installs Penstock's tables with this prefix into the connected database.

    >>> print(install_sql("jobs"))
    """
    return upgrade_sql(0, schema)


def upgrade_sql(version: int, schema: str = "penstock") -> str:
    """The SQL that brings tables of ``version`` up to this version's, empty if they are.

    >>> print(upgrade_sql(1, "jobs"))
    """
    check_prefix(schema)
    return "\n\n".join(_rendered(m, schema) for m in migrations() if m.number > version)


class Migrations(Base):
    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self) -> Plan[None]:
        """Safe to repeat, and when two processes do it at once."""
        yield from self._alone(self._install())

    def upgrade(self) -> Plan[None]:
        yield from self._alone(self._upgrade())

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        raise InvalidOption(
            "roles are made on PostgreSQL only: grant rights on the tables yourself"
        )

    def uninstall(self) -> Plan[None]:
        yield from self._alone(self._uninstall())

    def schema_version(self) -> Plan[int]:
        applied = yield from self._applied()
        if applied is None:
            raise SchemaMissing(
                f"Penstock is not installed with prefix {self.schema!r}: "
                "run queue.install() or penstock install"
            )
        return applied

    def _install(self) -> Plan[None]:
        applied = yield from self._applied()
        yield from self._apply(applied or 0)

    def _upgrade(self) -> Plan[None]:
        yield from self._apply((yield from self.schema_version()))

    def _uninstall(self) -> Plan[None]:
        yield from self.schema_version()
        yield from self._run(render(template("uninstall"), self.schema))

    def _alone(self, work: Plan[None]) -> Plan[None]:
        """The lock is the session's, not the transaction's: one that goes back into a pool must not
        keep it. (The session of a statement that failed is closed.)"""
        yield from self._lock()
        try:
            yield from work
        except PenstockError:
            yield self._say("migration_unlock", self._lock_name)
            raise
        yield self._say("migration_unlock", self._lock_name)

    @property
    def _lock_name(self) -> bytes:
        """At most 64 characters."""
        return b"penstock.migrate." + sha256(self.schema.encode()).hexdigest()[:32].encode()

    def _lock(self) -> Plan[None]:
        rows = yield self._say("migration_lock", self._lock_name)
        if rows[0][0] != 1:
            raise DatabaseFailed("another process has been migrating for a minute: try again")

    def _applied(self) -> Plan[int | None]:
        rows = yield self._say("migration_exists", f"{self.schema}_migration".encode())
        if not int(rows[0][0]):
            return None
        rows = yield self._say("migration_number")
        return None if rows[0][0] is None else int(rows[0][0])

    def _apply(self, version: int) -> Plan[None]:
        check_known(version, self.newest_version, self.schema)
        yield from self._run(upgrade_sql(version, self.schema))

    def _run(self, script: str) -> Plan[None]:
        for part in _statements(script):
            yield Statement(part, (), percent=True)


def _statements(script: str) -> list[str]:
    """Ours end with a semicolon at the end of a line, and no text in them does."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    parts = "\n".join(lines).split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))
