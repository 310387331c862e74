"""For diagnose: which queues have work that could start, and who works."""

from collections.abc import Sequence

from laneway.engines.mysql.names import text
from laneway.engines.service_findings import WaitingQueue
from laneway.engines.times import moment
from laneway.plan import Plan, Row

from .looks import MysqlLooks, name_bytes

_NEVER = 2**63 - 1
_QUEUES = 200


class MysqlService(MysqlLooks):
    def _waiting_work(self) -> Plan[list[WaitingQueue]]:
        rows = yield self._statement("last_claims")
        claims = {name_bytes(row[0]): moment(row[1]) for row in rows}
        names = (yield from self._queue_names())[:_QUEUES]
        now = self._now()
        waiting: Sequence[Row] = ()
        if names:
            waiting = yield self._union("waiting_queue", [(name, now) for name in names])
        found = []
        for queue, since, at in waiting:
            name = name_bytes(queue)
            rows = yield self._statement("kinds_of_wakes", name, int(at))
            due = None if int(since) == _NEVER else moment(since)
            kinds = [text(row[0]) or "" for row in rows]
            found.append(WaitingQueue(text(name) or "", due, claims.get(name), kinds))
        return found
