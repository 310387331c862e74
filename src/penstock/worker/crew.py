"""The crew: as many handlers at a time as the concurrency allows, and a short line before them."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta

from penstock.client.settlement import said

from .clock import now
from .deciding import after_error
from .desk import Desk
from .job import Interruption, Job
from .outcomes import GIVE_BACK, LEAVE, Defer, Outcome
from .pace import Pace
from .parting import forsake
from .performing import Performer
from .pulse import Pulse
from .tenure import Tenure
from .threads import Threads
from .unknown import Unknown
from .watching import Watcher, ending_of

_log = logging.getLogger("penstock.worker")

_LAST_RESORT = Defer(timedelta(minutes=1), error="its outcome could not be written")


class Crew:
    """``room`` is called when more can be claimed."""

    def __init__(
        self,
        concurrency: int,
        performer: Performer,
        tenure: Tenure,
        unknown: Unknown,
        pulse: Pulse,
        desk: Desk,
        threads: Threads,
        room: Callable[[], None],
        watchers: Sequence[Watcher],
    ) -> None:
        self._watchers = watchers
        self._concurrency = concurrency
        self._performer = performer
        self._tenure = tenure
        self._unknown = unknown
        self._pulse = pulse
        self._desk = desk
        self._threads = threads
        self._room = room
        self._line: deque[Job] = deque()
        self._running: set[Job] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._low = 0
        self.pace = Pace()
        self.ended = 0

    @property
    def running(self) -> int:
        return len(self._running)

    def room(self) -> int:
        """How many more to claim now: what can start at once, and a little ahead of it. None while
        at least half of that still waits in line."""
        ahead = self.pace.ahead()
        self._low = ahead // 2
        if len(self._line) > self._low:
            return 0
        free = self._concurrency - len(self._running) - self._threads.abandoned
        return max(0, free + ahead - len(self._line))

    def take(self, jobs: list[Job]) -> None:
        """Puts them in line, and starts what can start."""
        self._line.extend(jobs)
        moment = now()
        for job in jobs:
            job.lined_up = moment
            self._pulse.hold(job, float("inf"))
        self._idle.clear()
        self._start()
        self._note_idle()

    def give_back(self, jobs: list[Job]) -> None:
        """They came too late to begin."""
        for job in jobs:
            self._desk.put(job, GIVE_BACK)

    def clear_line_of(self, seconds: float) -> int:
        """Gives the line back if its first has stood there for so long, and says how many that
        were: handlers take longer than those before them, and others may be free. All of it, so
        that no message gets before an elder of its channel."""
        if not self._line or now() - self._line[0].lined_up < seconds:
            return 0
        standing = len(self._line)
        self.pace.forget()
        self.clear_line()
        return standing

    def clear_line(self) -> None:
        """Gives back what has not begun."""
        while self._line:
            self._desk.put(self._line.popleft(), GIVE_BACK)
        self._note_idle()

    def interrupt_all(self, why: Interruption) -> None:
        for job in list(self._running):
            self.interrupt(job, why)

    def forsake_all(self) -> None:
        """Gives back what runs on though it was interrupted; what it says later is refused."""
        for job in list(self._running):
            _log.error(
                "its handler does not heed its cancellation: left to itself",
                extra=job.log_fields(),
            )
            self._desk.put(job, LEAVE if job.acted or job.lost else GIVE_BACK)
            job.lost_flag = True
            if job.task is not None:
                forsake(job.task)

    def interrupt(self, job: Job, why: Interruption) -> None:
        """A thread cannot be stopped: it is told that its lease is lost, and keeps its place until
        it ends; only the end of the worker does not wait for it."""
        if why == "lost":
            job.lost_flag = True
        in_thread = job.handler is not None and job.handler.run == "thread"
        if job.task is None or job.interruption is not None or (in_thread and why == "lost"):
            return
        job.interruption = why
        job.task.cancel()

    def refill(self) -> None:
        """A place came free by itself: start what waits, or have more claimed."""
        self._start()
        self._room()

    async def idle(self) -> None:
        """Waits until nothing runs and nothing is in line."""
        await self._idle.wait()

    def _start(self) -> None:
        while self._line and len(self._running) + self._threads.abandoned < self._concurrency:
            job = self._line.popleft()
            self._running.add(job)
            job.task = asyncio.create_task(self._do(job))

    async def _do(self, job: Job) -> None:
        outcome: Outcome = LEAVE
        try:
            if await self._tenure.lasts(job):
                outcome = await self._outcome(job)
        except asyncio.CancelledError:
            # Before its handler began, or after it ended: it counts for nothing.
            outcome = LEAVE if job.acted or job.lost else GIVE_BACK
        except Exception as error:  # ours, or a log handler's: the message is not to blame
            _log.exception("the worker failed at a message", extra=job.log_fields())
            outcome = Defer(timedelta(minutes=1), error=error)
        finally:
            try:
                self._settle(job, outcome)
                for watcher in self._watchers:
                    watcher.ended(job, ending_of(outcome), now() - (job.started or now()))
            finally:
                self._free_place(job)

    def _free_place(self, job: Job) -> None:
        self._running.discard(job)
        job.task = None
        self.ended += 1
        self.pace.ended()
        self._start()
        if len(self._line) <= self._low:
            self._room()
        self._note_idle()

    async def _outcome(self, job: Job) -> Outcome:
        job.started = now()
        handler = job.handler
        if handler is None:
            return await self._unknown.outcome(job)
        return await self._performer.perform(job, handler)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """An outcome that cannot be written is an error of its handler: a state may be anything,
        and raise anything."""
        try:
            self._desk.put(job, outcome)
        except Exception as error:
            _log.warning("its outcome cannot be written: %s", said(error), extra=job.log_fields())
            self._settle_as_error(job, error)

    def _settle_as_error(self, job: Job, error: Exception) -> None:
        try:
            assert job.handler is not None
            self._desk.put(job, after_error(job, job.handler, error))
        except Exception:  # nor can the error
            _log.exception("its error cannot be written either", extra=job.log_fields())
            self._desk.put(job, _LAST_RESORT)

    def _note_idle(self) -> None:
        if not self._running and not self._line:
            self._idle.set()
