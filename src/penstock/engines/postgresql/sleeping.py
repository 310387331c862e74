"""bell and sleep: how an idle worker is told that something came."""

from datetime import timedelta

from penstock.plan import Plan

from .base import Base


class Sleeping(Base):
    def bell(self) -> Plan[str | None]:
        rows = yield self._say("bell")
        return str(rows[0][0])

    def sleep(self, queues: tuple[str, ...], worker: str, length: timedelta | None) -> Plan[None]:
        yield self._say_now("sleep", list(queues), worker, length)
