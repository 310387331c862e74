"""Install and upgrade: numbered migrations, one folder each; repair puts back what was dropped."""

from functools import cache
from hashlib import sha256

from laneway.engines.drift import Found, Kind, Part, ShapeLook, missing, parts_of, repaired
from laneway.engines.migration_files import Migration, between, check_known, read_migrations
from laneway.errors import DatabaseFailed, InvalidOption, LanewayError, SchemaMissing
from laneway.inspection import Repair
from laneway.plan import Plan, Statement

from .base import MysqlSql, check_prefix, text
from .render import FOLDER, render, template


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this version, in order, with the prefix still ``laneway``."""
    return read_migrations(FOLDER / "migrations")


def install_sql(schema: str = "laneway", version: int | None = None) -> str:
    """The SQL that installs Laneway, its tables prefixed by ``schema``."""
    return upgrade_sql(0, schema, version)


def upgrade_sql(since: int, schema: str = "laneway", version: int | None = None) -> str:
    """The same for tables of version ``since``; empty if that is the version."""
    check_prefix(schema)
    return "\n\n".join(_rendered(m, schema) for m in between(migrations(), since, version))


def uninstall_sql(schema: str = "laneway") -> str:
    """The SQL that removes Laneway's tables with everything in them."""
    check_prefix(schema)
    return render(template("uninstall"), schema) + ";\n"


class MysqlSchema:
    """Numbered migrations: one folder each under ``migrations/``, tables first, then views.

    MySQL commits every change of a table separately. So each statement can be repeated, and the row
    that records a migration is written last: an install that was interrupted is simply run again.
    """

    def __init__(self, sql: MysqlSql) -> None:
        self._sql = sql

    @property
    def newest_version(self) -> int:
        return migrations()[-1].number

    def install(self, version: int | None = None) -> Plan[None]:
        """Safe to repeat, and safe when two processes do it at the same time."""
        yield from self._one_at_a_time(self._install(version))

    def upgrade(self, version: int | None = None) -> Plan[None]:
        yield from self._one_at_a_time(self._upgrade(version))

    def install_roles(self, prefix: str | None) -> Plan[list[str]]:
        raise InvalidOption("roles are for PostgreSQL only: grant rights on the tables yourself")

    def uninstall(self) -> Plan[None]:
        yield from self._one_at_a_time(self._uninstall())

    def takes_writes(self) -> Plan[bool]:
        ((answer,),) = yield self._sql.statement("takes_writes")
        return bool(answer)

    def schema_version(self) -> Plan[int]:
        applied = yield from self.applied()
        if applied is None:
            raise SchemaMissing(
                f"Laneway is not installed with prefix {self._sql.schema!r}: "
                "run queue.install() or laneway install"
            )
        return applied

    def _install(self, version: int | None) -> Plan[None]:
        applied = yield from self.applied()
        yield from self._apply(applied or 0, version)

    def _upgrade(self, version: int | None) -> Plan[None]:
        yield from self._apply((yield from self.schema_version()), version)

    def _uninstall(self) -> Plan[None]:
        yield from self.schema_version()
        yield from self._run(render(template("uninstall"), self._sql.schema))

    def _one_at_a_time(self, work: Plan[None]) -> Plan[None]:
        """The lock belongs to the session, not to the transaction, so it is released before the
        connection returns to its pool. (After a failed statement the session is closed.)"""
        yield from self._lock_migrations()
        try:
            yield from work
        except LanewayError:
            yield self._sql.statement("migration_unlock", self._lock_name)
            raise
        yield self._sql.statement("migration_unlock", self._lock_name)

    @property
    def _lock_name(self) -> bytes:
        """At most 64 characters."""
        return b"laneway.migrate." + sha256(self._sql.schema.encode()).hexdigest()[:32].encode()

    def _lock_migrations(self) -> Plan[None]:
        lock = self._sql.statement("migration_lock", self._lock_name)
        rows = yield lock._replace(long=True)
        if rows[0][0] != 1:
            raise DatabaseFailed(
                "another process has been migrating for more than a minute: try again"
            )

    def applied(self) -> Plan[int | None]:
        rows = yield self._sql.statement(
            "migration_exists", f"{self._sql.schema}_migration".encode()
        )
        if not int(rows[0][0]):
            return None
        rows = yield self._sql.statement("migration_number")
        return None if rows[0][0] is None else int(rows[0][0])

    def _apply(self, applied: int, version: int | None) -> Plan[None]:
        check_known(applied, self.newest_version, self._sql.schema)
        yield from self._run(upgrade_sql(applied, self._sql.schema, version))

    def _run(self, script: str) -> Plan[None]:
        for part in _statements(script):
            yield Statement(part, (), percent=True, long=True)


def _statements(script: str) -> list[str]:
    """Ours end with a semicolon at the end of a line; no string in them contains one there."""
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    parts = "\n".join(lines).split(";\n")
    return [part.strip().rstrip(";") for part in parts if part.strip()]


def _rendered(migration: Migration, schema: str) -> str:
    return migration.rendered(lambda text: render(text, schema), template("migration_note"))


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f"`laneway_{table}`")
    return {key: part.rendered(lambda sql: render(sql, schema)) for key, part in parts.items()}


class MysqlRepair(ShapeLook, MysqlSchema):
    """repair: what somebody dropped or changed is put back as the migrations have it."""

    def repair(self) -> Plan[list[Repair]]:
        found = yield from self._found()
        done = []
        for part in self._lost(found):
            if part.sql is not None:
                yield Statement(part.sql, (), percent=True, long=True)
            done.append(repaired(part, found))
        return done

    def _lost(self, found: Found) -> list[Part]:
        return missing(shape(self._sql.schema), found)

    def _found(self) -> Plan[Found]:
        prefix = f"{self._sql.schema}_"
        rows = yield self._sql.statement("shape", prefix.encode(), len(prefix))
        found: dict[tuple[str, str], str | None] = {}
        for row in rows:
            kind, table, part = (text(value) or "" for value in row[:3])
            name = table.removeprefix(prefix)
            if kind == "column":
                if ("view", name) not in found:
                    found["column", f"{name}.{part}"] = _default(text(row[3]))
            elif kind != "index":
                found[kind, name] = text(row[3])
            elif part == "PRIMARY":
                found["primary key", name] = None
            else:
                found["index", part] = None
        return found


def _default(said: str | None) -> str | None:
    """A column's default; MySQL writes bytes in hexadecimal."""
    if said is not None and said.startswith("0x"):
        return bytes.fromhex(said[2:]).decode()
    return said
