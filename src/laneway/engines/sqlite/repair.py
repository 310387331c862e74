"""repair: what somebody dropped is put back as the migrations have it."""

from functools import cache

from laneway.engines.drift import Found, drift_finding, missing, repaired
from laneway.engines.shape import Kind, Part, parts_of
from laneway.inspection import Finding, Repair
from laneway.plan import Plan, Statement

from .render import render
from .schema import SqliteSchema, migrations


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f'"laneway_{table}"')
    return {key: part.rendered(lambda sql: render(sql, schema)) for key, part in parts.items()}


class SqliteRepair(SqliteSchema):
    def repair(self) -> Plan[list[Repair]]:
        found = yield from self._found()
        done = []
        for part in missing(shape(self.schema), found):
            if part.sql is not None:
                yield Statement(part.sql)
            done.append(repaired(part, found))
        return done

    def drift(self) -> Plan[Finding]:
        found = yield from self._found()
        return drift_finding(missing(shape(self.schema), found), found)

    def _found(self) -> Plan[Found]:
        prefix = f"{self.schema}_"
        rows = yield self._read_outside("shape", prefix, len(prefix))
        found: dict[tuple[str, str], str | None] = {}
        for kind, owner, column, key in rows:
            name = owner.removeprefix(prefix)
            found[kind, f"{name}.{column}" if kind == "column" else name] = None
            if key:
                found["primary key", name] = None
        return found
