"""The registry of worker processes, and requests to cancel what they run."""

from collections.abc import Sequence

from laneway.engines.postgresql.base import PostgresqlBase
from laneway.model import Cancelled, HeldLease
from laneway.operations import WorkerInfo
from laneway.plan import Plan, Row


class PostgresqlWorkers(PostgresqlBase):
    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (info.id, info.name, info.host, info.pid, info.version)
        what = (list(info.queues), list(info.kinds))
        load = (info.slots, info.used, info.state == "stopping")
        rows = yield self._statement_now("worker_seen", *who, *what, *load)
        return [HeldLease(*row) for row in rows]

    def worker_gone(self, id: str) -> Plan[None]:
        yield self._statement("worker_gone", id)

    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._statement_now("workers", limit)
        return [_info(row) for row in rows]

    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        rows = yield self._statement_now("cancel_running", list(ids))
        status = {row[0]: row[1] for row in rows}
        return [Cancelled(id, status[id]) for id in ids]


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, *rest = row
    return WorkerInfo(id, host, pid, version, tuple(queues), tuple(kinds), *rest)
