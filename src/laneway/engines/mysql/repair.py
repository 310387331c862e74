"""repair: what somebody dropped or changed is put back as the migrations have it."""

from functools import cache

from laneway.engines.drift import Found, drift_finding, missing, repaired
from laneway.engines.shape import Kind, Part, parts_of
from laneway.inspection import Finding, Repair
from laneway.plan import Plan, Statement

from .names import text
from .render import render
from .schema import MysqlSchema, migrations


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f"`laneway_{table}`")
    return {key: part.rendered(lambda sql: render(sql, schema)) for key, part in parts.items()}


class MysqlRepair(MysqlSchema):
    def repair(self) -> Plan[list[Repair]]:
        found = yield from self._found()
        done = []
        for part in missing(shape(self.schema), found):
            if part.sql is not None:
                yield Statement(part.sql, (), percent=True, long=True)
            done.append(repaired(part, found))
        return done

    def drift(self) -> Plan[Finding]:
        found = yield from self._found()
        return drift_finding(missing(shape(self.schema), found), found)

    def _found(self) -> Plan[Found]:
        prefix = f"{self.schema}_"
        rows = yield self._statement("shape", prefix.encode(), len(prefix))
        found: dict[tuple[str, str], str | None] = {}
        for row in rows:
            kind, table, part = (text(value) or "" for value in row[:3])
            name = table.removeprefix(prefix)
            if kind == "column":
                found["column", f"{name}.{part}"] = text(row[3])
            elif kind != "index":
                found[kind, name] = text(row[3])
            elif part == "PRIMARY":
                found["primary key", name] = None
            else:
                found["index", part] = None
        return found
