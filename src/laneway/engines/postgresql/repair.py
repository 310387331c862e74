"""repair: what somebody dropped or changed is put back as the migrations have it."""

import re
from collections.abc import Iterator
from functools import cache

from laneway.engines.drift import BETWEEN, Found, drift_finding, missing, repaired
from laneway.engines.shape import Kind, Part, parts_of
from laneway.inspection import Finding, Repair
from laneway.plan import Plan, Statement

from .render import quoted, render
from .schema import PostgresqlSchema, migrations

_PARTITIONED = ("history",)  # which CONCURRENTLY does not know


@cache
def shape(schema: str) -> dict[tuple[Kind, str], Part]:
    """What an installation of this version consists of."""
    script = "\n".join(migration.text for migration in migrations())
    parts = parts_of(script, lambda table: f'"laneway".{table}')
    return {key: part.rendered(lambda text: render(text, schema)) for key, part in parts.items()}


class PostgresqlRepair(PostgresqlSchema):
    def repair(self) -> Plan[list[Repair]]:
        """One statement after the other, each by itself: an index is built without locking out
        those who write."""
        found = yield from self._found()
        done = []
        for part in missing(shape(self.schema), found):
            for sql in self._putting_back(part):
                yield Statement(sql, script=True, long=True, outside=True)
            done.append(repaired(part, found))
        if done:
            yield from self._grant_again()
        return done

    def drift(self) -> Plan[Finding]:
        found = yield from self._found()
        return drift_finding(missing(shape(self.schema), found), found)

    def _putting_back(self, part: Part) -> Iterator[str]:
        if part.sql is None:
            return
        if part.kind != "index" or part.table in _PARTITIONED:
            yield part.sql
            return
        # One that is there, but not valid, was left by a build that failed.
        yield f"drop index concurrently if exists {quoted(self.schema)}.{quoted(part.name)}"
        yield re.sub(r"\bindex\b", "index concurrently", part.sql, count=1)

    def _found(self) -> Plan[Found]:
        rows = yield self._statement("shape", self.schema)
        found: dict[tuple[str, str], str | None] = {}
        for kind, name, body in rows:
            key = str(kind), str(name)
            found[key] = body if found.get(key) is None else f"{found[key]}{BETWEEN}{body}"
        return found
