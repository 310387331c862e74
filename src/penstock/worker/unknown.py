"""Messages of a kind that nobody here handles: during a deploy somebody else may."""

import logging
from datetime import timedelta

from penstock.client.async_core import AsyncCore
from penstock.errors import PenstockError

from .clock import now
from .job import Job
from .outcomes import Fail, GiveBack, Outcome

_log = logging.getLogger("penstock.worker")

_MOST_REMEMBERED = 10_000


class Unknown:
    """Gives them back for ``delay``, and up once nobody took them for ``patience``."""

    def __init__(self, core: AsyncCore, delay: timedelta, patience: timedelta) -> None:
        self._core = core
        self._delay = delay
        self._patience = patience
        self._told: set[str] = set()
        self._first_seen: dict[int, float] = {}

    async def outcome(self, job: Job) -> Outcome:
        if job.kind not in self._told:
            if len(self._told) >= _MOST_REMEMBERED:
                self._told.clear()
            self._told.add(job.kind)
            _log.warning(
                "no handler for kind %r: such messages are given back every %s, and become dead "
                "letters after %s",
                job.kind,
                self._delay,
                self._patience,
                extra=job.log_fields(),
            )
        if await self._waited(job) >= self._patience:
            self._first_seen.pop(job.id, None)
            return Fail("no_handler")
        return GiveBack(self._delay)

    async def _waited(self, job: Job) -> timedelta:
        """Since it was first given back, by anyone, as far as the history or this worker knows.
        Not since it was published: it may have been meant for later."""
        moment = now()
        if len(self._first_seen) >= _MOST_REMEMBERED:
            del self._first_seen[next(iter(self._first_seen))]
        seen = timedelta(seconds=moment - self._first_seen.setdefault(job.id, moment))
        if seen >= self._patience or job.claimed_at - job.published_at < self._patience:
            return seen
        try:
            history = await self._core.run(self._core.engine.history(job.id))
        except PenstockError:
            return seen
        given = [e.ended_at for e in history if e.outcome == "given_back"]
        return max(seen, job.claimed_at - min(given)) if given else seen
