"""Names that are probably misspelt: queues that nobody publishes to, limits that nobody has set."""

import logging
from collections.abc import Sequence

from laneway.client.aio.database import AsyncDatabase
from laneway.errors import LanewayError
from laneway.plan import ClaimColumn as Column
from laneway.spelling import nearest
from laneway.worker.job import Job

_log = logging.getLogger("laneway.worker")

_MOST_WORKERS = 1_000
_MOST_NAMES = 10_000
_SIMILAR = 0.8  # either name may be right


class Typos:
    """A worker warns of them; either name may be right, and be used later."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database
        self._seen: set[str] = set()

    async def look_at_queues(self, served: Sequence[str], of_tasks: Sequence[str]) -> None:
        """``served`` may be named by a person; ``of_tasks`` is where its own tasks are published
        to."""
        strange = [name for name in served if name not in of_tasks]
        if not strange:
            return
        try:
            known = {
                stats.queue
                for stats in await self._database.run(
                    self._database.engine.inspection.queue_stats()
                )
            }
            workers = await self._database.run(self._database.engine.workers.workers(_MOST_WORKERS))
        except LanewayError as error:
            _log.debug("cannot ask which queues there are: %s", error)
            return
        known.update(of_tasks, (name for worker in workers for name in worker.queues))
        for name in strange:
            if name in known:
                continue
            if near := nearest(name, known, _SIMILAR):
                _log.warning("nothing is in the queue %r: did you mean %r?", name, near)
            else:
                _log.info("nothing is in the queue %r, and none of its tasks goes there", name)

    async def look_at_limits(self, jobs: Sequence[Job]) -> None:
        """Of messages that were claimed: one that nobody has set holds nothing back."""
        named = {name for job in jobs if job._row[Column.HEADERS] for name in job.limits}
        new = named - self._seen
        if not new or len(self._seen) > _MOST_NAMES:
            return
        self._seen |= new
        try:
            found = await self._database.run(self._database.engine.limits.shared_limits())
        except LanewayError as error:
            _log.debug("cannot ask which limits there are: %s", error)
            return
        limited = [limit.name for limit in found if limit.limited]
        for name in sorted(new.difference(limited)):
            near = nearest(name, limited, _SIMILAR)
            _log.warning(
                "messages name the limit %r, which nobody has set, so it holds nothing back: %s",
                name,
                f"did you mean {near!r}?" if near else f"set it with queue.limits[{name!r}].set(…)",
            )
