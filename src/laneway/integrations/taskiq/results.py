"""Taskiq's results in the queue's database, in a table of their own."""

import time
from datetime import timedelta
from typing import Any, TypeVar

from taskiq import AsyncResultBackend, TaskiqResult
from taskiq.abc.serializer import TaskiqSerializer
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.exceptions import ResultGetError
from taskiq.serializers import JSONSerializer

from laneway.client.aio.queue import AsyncQueue
from laneway.durations import Duration, check_duration
from laneway.errors import DatabaseFailed
from laneway.plan import Plan, Row, Statement
from laneway.sqlfile import statements

T = TypeVar("T")

KEEP_RESULTS = timedelta(days=1)
_PURGE_EVERY = 60.0


class TaskResultMissing(ResultGetError):  # type: ignore[misc]
    """The task has not ended, its result is no longer kept, or there never was such a task."""

    __template__ = "there is no result of task {task_id}: it has not ended, or is no longer kept"
    task_id: str


class LanewayResultBackend(AsyncResultBackend[T]):  # type: ignore[misc]
    """Keeps the results of tasks, and how far they are, for ``keep_results``.

    ``queue`` is a client or a URL. The table ``taskiq_laneway_results`` is created at the start.
    Results are written with ``serializer``, JSON by default.

    >>> broker = LanewayBroker(url).with_result_backend(LanewayResultBackend(url))
    """

    def __init__(
        self,
        queue: AsyncQueue | str,
        *,
        keep_results: Duration = KEEP_RESULTS,
        serializer: TaskiqSerializer | None = None,
    ) -> None:
        self.queue = AsyncQueue(queue) if isinstance(queue, str) else queue
        self._keep = check_duration("keep_results", keep_results).total_seconds()
        self._serializer = serializer or JSONSerializer()
        self._statements = statements(__package__ or "", self.queue.database.engine.dialect)
        self._purge_at = 0.0

    async def startup(self) -> None:
        if not await self._rows("there"):
            try:
                await self.queue.database.run(self._create())
            except DatabaseFailed:
                if not await self._rows("there"):  # else another process was quicker
                    raise

    async def shutdown(self) -> None:
        await self.queue.close()

    async def set_result(self, task_id: str, result: TaskiqResult[T]) -> None:
        """A value that cannot be written is told to whoever waits for it."""
        try:
            data = self._dumped(result)
        except Exception as error:
            why = TypeError(f"what the task returned cannot be kept: {error}")
            told = result.model_copy(update={"is_err": True, "return_value": None, "error": why})
            data = self._dumped(told)
        await self._rows("set_result", task_id, data, self._keep)
        await self._purge()

    async def is_result_ready(self, task_id: str) -> bool:
        return bool(await self._rows("is_ready", task_id))

    async def get_result(self, task_id: str, with_logs: bool = False) -> TaskiqResult[T]:
        """Raises TaskResultMissing."""
        rows = await self._rows("get_result", task_id)
        if not rows:
            raise TaskResultMissing(task_id=task_id)
        return TaskiqResult.model_validate(self._serializer.loadb(bytes(rows[0][0])))

    async def set_progress(self, task_id: str, progress: TaskProgress[Any]) -> None:
        data = self._serializer.dumpb(progress.model_dump(mode="json"))
        await self._rows("set_progress", task_id, data, self._keep)

    async def get_progress(self, task_id: str) -> TaskProgress[Any] | None:
        rows = await self._rows("get_progress", task_id)
        if not rows:
            return None
        return TaskProgress.model_validate(self._serializer.loadb(bytes(rows[0][0])))

    def _dumped(self, result: TaskiqResult[T]) -> bytes:
        data: bytes = self._serializer.dumpb(result.model_dump(mode="json"))
        return data

    async def _purge(self) -> None:
        """Now and then; what is no longer kept is not shown before that either."""
        if time.monotonic() >= self._purge_at:
            self._purge_at = time.monotonic() + _PURGE_EVERY
            await self._rows("purge")

    async def _rows(self, name: str, *params: object) -> list[Row]:
        return await self.queue.database.run(self._plan(name, params))

    def _create(self) -> Plan[None]:
        yield Statement(self._statements["create"], script=True)

    def _plan(self, name: str, params: tuple[object, ...]) -> Plan[list[Row]]:
        percent = self.queue.database.engine.dialect == "mysql"
        return list((yield Statement(self._statements[name], params, percent=percent)))
