"""run_now: scheduled messages become due now."""

from collections.abc import Sequence

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.model import MadeDue
from laneway.plan import Plan


class PostgresqlRunNow(PostgresqlBase):
    def run_now(self, ids: Sequence[int]) -> Plan[list[MadeDue]]:
        rows = yield self._statement_now("run_now", list(ids))
        status = {row[0]: row[1] for row in rows}
        return [MadeDue(id, status[id]) for id in ids]
