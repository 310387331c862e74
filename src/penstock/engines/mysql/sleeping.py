"""bell and sleep: MySQL cannot ring, so workers poll."""

from datetime import timedelta

from penstock.plan import Plan

from .base import Base


class Sleeping(Base):
    def bell(self) -> Plan[str | None]:
        yield from ()
        return None

    def sleep(self, queues: tuple[str, ...], worker: str, length: timedelta | None) -> Plan[None]:
        yield from ()
