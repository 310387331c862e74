"""The workshop: all that stands around handlers while they run, whoever claimed their messages."""

import logging
from collections.abc import Callable, Sequence

from penstock.client.async_queue import AsyncQueue
from penstock.contract import Taken
from penstock.model import Settled

from .crew import Crew
from .desk import Desk
from .hand import Hand
from .handlers import check_payload
from .job import Job
from .kit import Kit
from .parting import PARTING, part
from .performing import Performer
from .processes import Processes
from .pulse import Pulse
from .tenure import Tenure
from .threads import Threads
from .transactions import Transactions, check_transactions
from .unknown import Unknown
from .watching import Watcher

_log = logging.getLogger("penstock.worker")

_MOST_TRANSACTIONS = 20


class Workshop:
    """Up to ``most`` messages are held here at a time. ``room`` is called when the crew can take
    more, ``freed`` when a message is off the desk."""

    def __init__(
        self,
        client: AsyncQueue,
        kit: Kit,
        most: int,
        watchers: Sequence[Watcher],
        room: Callable[[], None],
        freed: Callable[[], None],
    ) -> None:
        self._find = kit.handlers.find
        self._watchers = watchers
        self._freed = freed
        core, options, address = client._core, kit.options, client._address
        for handler in kit.handlers.all():
            check_payload(handler)
        check_transactions(kit.handlers.all(), core.engine.lacks)
        self.pulse = Pulse(address, options.lease.total_seconds(), most, self._lost)
        self.desk = Desk(core, self.pulse, self._settled)
        self._threads = Threads(lambda: self.crew.refill())
        self._processes = Processes(options.processes)
        self._transactions = Transactions(address, min(options.concurrency, _MOST_TRANSACTIONS))
        hand = Hand(core, self.pulse.release)
        tenure = Tenure(self.pulse, hand)
        performer = Performer(
            core,
            hand,
            tenure,
            self._threads,
            self._processes,
            self._transactions,
            kit.middleware,
            kit.hooks,
        )
        self.crew = Crew(
            options.concurrency,
            performer,
            tenure,
            Unknown(core, options.unknown_delay, options.unknown_patience),
            self.pulse,
            self.desk,
            self._threads,
            room,
            watchers,
        )

    def jobs(self, taken: Taken, deadline: float) -> list[Job]:
        """What was claimed; its leases end at ``deadline`` at the earliest, by our own clock."""
        claimed_at, until, find = taken.claimed_at, taken.until, self._find
        if claimed_at is None or until is None:
            return []
        return [Job(row, claimed_at, until, deadline, find(row[4])) for row in taken.rows]

    async def close(self) -> None:
        self._threads.close()
        self._processes.close()
        await part(self._transactions.close(), PARTING)
        self.pulse.close()

    def _settled(self, job: Job, answer: Settled | None) -> None:
        self.pulse.release(job)
        if answer is not None and answer.lost and not job.lost:
            self._tell_lost(job)
        job.lost_flag = True  # a handler that goes on in its thread has nothing to say any more
        self._freed()

    def _lost(self, job: Job) -> None:
        if not (job.lost or job.acted or job.in_transaction):
            self._tell_lost(job)
            self.crew.interrupt(job, "lost")

    def _tell_lost(self, job: Job) -> None:
        for watcher in self._watchers:
            watcher.lost(job)
        _log.warning(
            "the lease was lost: somebody else may have the message", extra=job.log_fields()
        )
