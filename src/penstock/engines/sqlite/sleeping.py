"""bell and sleep: the bell looks at the file by itself, so nobody has to be told."""

from datetime import timedelta

from penstock.plan import Plan

from .base import Base


class Sleeping(Base):
    def bell(self) -> Plan[str | None]:
        """Nothing to listen to: whatever is committed can be seen."""
        yield self._look("settings")
        return None

    def sleep(self, queues: tuple[str, ...], worker: str, length: timedelta | None) -> Plan[None]:
        yield self._look("settings")
