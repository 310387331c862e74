"""The registry of worker processes, and requests to cancel what they run."""

import json
from collections.abc import Sequence
from dataclasses import replace

from laneway.engines.sqlite.base import listed
from laneway.engines.sqlite.settle.settle import SqliteSettle
from laneway.engines.times import micros, moment
from laneway.model import Cancelled, HeldLease
from laneway.operations import FORGOTTEN_AFTER, WorkerInfo
from laneway.plan import Plan, Row


class SqliteWorkers(SqliteSettle):
    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (info.id, info.name, info.host, info.pid, info.version)
        what = (listed(info.queues), listed(info.kinds))
        load = (info.slots, info.used, info.state == "stopping")
        rows = yield self._statement("worker_seen", *who, *what, *load, self._now())
        return [HeldLease(*lease) for lease in json.loads(rows[0][0])]

    def worker_gone(self, id: str) -> Plan[None]:
        yield self._statement("worker_gone", id)

    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._read_outside("workers", limit, self._now())
        return [_info(row) for row in rows]

    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """In one transaction with the only write lock: no lease ends meanwhile."""
        results = yield from self.cancel(ids)
        leased = [result.id for result in results if result.status == "leased"]
        if leased:
            yield self._statement("add_cancel_requests", listed(leased), self._now())
        return [replace(r, status="requested") if r.status == "leased" else r for r in results]

    def _forget_workers(self, now: int) -> Plan[int]:
        """For upkeep: workers that vanished long ago, and requests whose lease has ended."""
        old = yield self._statement("delete_old_workers", now - micros(FORGOTTEN_AFTER))
        requests = yield self._statement("delete_old_requests")
        return len(old) + len(requests)


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, slots, used, started, seen, state, name = row
    names = tuple(json.loads(queues)), tuple(json.loads(kinds))
    times = moment(started), moment(seen)
    return WorkerInfo(id, host, pid, version, *names, slots, used, *times, state, name)
