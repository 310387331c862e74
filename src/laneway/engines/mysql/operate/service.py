"""For diagnose: which queues have work that could start, and who works."""

from laneway.engines.mysql.base import MysqlBase
from laneway.engines.mysql.names import text
from laneway.engines.service_findings import WaitingQueue
from laneway.engines.times import moment
from laneway.plan import Plan

_NEVER = 2**63 - 1


class MysqlService(MysqlBase):
    def _waiting_work(self) -> Plan[list[WaitingQueue]]:
        claims = {row[0]: moment(row[1]) for row in (yield self._statement("last_claims"))}
        found = []
        for queue, since, now in (yield self._statement("waiting_queues", self._now())):
            kinds = yield self._statement("kinds_of_wakes", queue, int(now))
            due = None if int(since) == _NEVER else moment(since)
            names = [text(row[0]) or "" for row in kinds]
            found.append(WaitingQueue(text(queue) or "", due, claims.get(queue), names))
        return found
