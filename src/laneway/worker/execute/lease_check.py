"""Whether a message may still be started, once its lease has expired by our own clock; and for how
long its lease is extended once it has started."""

from contextlib import suppress

from laneway.errors import LanewayError
from laneway.worker.clock import now
from laneway.worker.heartbeat.heartbeat import Heartbeat
from laneway.worker.job import Job

from .handler_message import HandlerSettling


class TooLate(Exception):
    """The lease expired while the message waited for a process, a transaction or a batch: its
    handler does not begin."""


class LeaseCheck:
    def __init__(self, heartbeat: Heartbeat, settling: HandlerSettling) -> None:
        self._heartbeat = heartbeat
        self._settling = settling

    def limit(self, job: Job, seconds: float) -> None:
        """Its handler begins: one that cannot even be timed out loses its lease after that."""
        self._heartbeat.bound(job, now() + seconds)

    async def regain(self, job: Job) -> bool:
        """Whether the lease is ours though ``job.deadline`` has passed: the heartbeat may have
        extended it, and if not, the database is asked to.

        To be called after every wait before a handler begins: the process may have been stopped
        meanwhile.
        """
        self._heartbeat.refresh(job)
        if job.deadline > now():
            return True
        with suppress(LanewayError):
            results = await self._settling.extend([job])
            return not results[0].lost
        return False
