"""The registry of worker processes, and requests to cancel what they run."""

import json
from collections.abc import Sequence
from typing import Any

from laneway.engines.mysql.base import repeatable
from laneway.engines.mysql.names import data, text
from laneway.engines.mysql.settle.cancel import MysqlCancel
from laneway.engines.times import micros, moment
from laneway.model import Cancelled, HeldLease
from laneway.operations import FORGOTTEN_AFTER, WorkerInfo
from laneway.plan import Plan, Row

_TRIES = 5


class MysqlWorkers(MysqlCancel):
    @repeatable
    def worker_seen(self, info: WorkerInfo) -> Plan[list[HeldLease]]:
        who = (data(info.id), data(info.name), data(info.host), info.pid, data(info.version))
        what = (json.dumps(info.queues).encode(), json.dumps(info.kinds).encode())
        load = (info.slots, info.used, info.state == "stopping")
        yield self._statement("worker_seen", *who, *what, *load, self._now())
        rows = yield self._statement("cancel_requests", data(info.name))
        return [HeldLease(int(row[0]), int(row[1])) for row in rows]

    @repeatable
    def worker_gone(self, id: str) -> Plan[None]:
        yield self._statement("worker_gone", data(id))

    @repeatable
    def workers(self, limit: int) -> Plan[list[WorkerInfo]]:
        rows = yield self._statement("workers", limit, self._now())
        return [_info(row) for row in rows]

    @repeatable
    def cancel_running(self, ids: Sequence[int]) -> Plan[list[Cancelled]]:
        """A lease that ends between the two steps is looked at again: its message waits again, or
        has ended."""
        found: dict[int, Cancelled] = {}
        for _ in range(_TRIES):
            left = [id for id in dict.fromkeys(ids) if id not in found or _leased(found[id])]
            if not left:
                break
            found |= {result.id: result for result in (yield from self._cancel(left))}
            leased = sorted(id for id in left if _leased(found[id]))
            if not leased:
                break
            rows = yield self._statement("leases_to_cancel", leased, self._now())
            if rows:
                yield from self._insert("add_cancel_requests", [tuple(row) for row in rows])
                found |= {int(row[0]): Cancelled(int(row[0]), "requested") for row in rows}
        return [found[id] for id in ids]

    def _forget_workers(self, now: int) -> Plan[int]:
        """For upkeep: workers that vanished long ago, and requests whose lease has ended."""
        end = now - micros(FORGOTTEN_AFTER)
        old = yield self._statement("old_workers", end)
        if old:
            yield self._statement("delete_workers", [row[0] for row in old], end)
        requests = yield self._statement("old_requests")
        if requests:
            yield self._statement("delete_requests", [(int(r[0]), int(r[1])) for r in requests])
        return len(old) + len(requests)


def _leased(result: Cancelled) -> bool:
    return result.status == "leased"


def _info(row: Row) -> WorkerInfo:
    id, host, pid, version, queues, kinds, slots, used, started, seen, state, name = row
    names = (tuple(json.loads(queues)), tuple(json.loads(kinds)))
    times = (moment(started), moment(seen))
    who = (text(id) or "", text(host) or "", pid, text(version) or "")
    said: Any = state.decode() if isinstance(state, bytes) else state
    return WorkerInfo(*who, *names, slots, used, *times, said, text(name) or "")
