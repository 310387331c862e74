"""repair: what somebody dropped or changed is put back as the migrations have it."""

from functools import cache

from laneway.engines.definitions import squeezed
from laneway.engines.drift import BETWEEN, Found, drift_finding, missing, repaired
from laneway.engines.shape import Kind, Part, parts_of, table_parts
from laneway.inspection import Finding, Repair
from laneway.plan import Plan, Statement

from .render import render
from .schema import SqliteSchema, migrations


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


class SqliteRepair(SqliteSchema):
    def repair(self) -> Plan[list[Repair]]:
        found = yield from self._found()
        done = []
        for part in missing(shape(self.schema), found, _same):
            if part.sql is not None and (part.kind, part.name) in found:
                yield Statement(f'drop {part.kind} "{self.schema}_{part.name}"')
            if part.sql is not None:
                yield Statement(part.sql)
            done.append(repaired(part, found))
        return done

    def drift(self) -> Plan[Finding]:
        found = yield from self._found()
        return drift_finding(missing(shape(self.schema), found, _same), found)

    def _found(self) -> Plan[Found]:
        prefix = f"{self.schema}_"
        rows = yield self._read_outside("shape", prefix, len(prefix))
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
