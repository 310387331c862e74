"""What the tests ask of the table of tasks, answered from the queue."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.tasks import default_task_backend
from django.utils import timezone

from laneway.integrations.django import queue
from laneway.integrations.django.task_api import TaskResultDoesNotExist

_STATUS = {"waiting": "READY", "scheduled": "READY", "leased": "RUNNING", "dead": "FAILED"}


def get_date_max() -> datetime:
    raise NotImplementedError


class Record:
    def __init__(self, id: int) -> None:
        self.id = id

    def refresh_from_db(self) -> None:
        info = queue.message(self.id)
        assert info is not None
        self.status = _STATUS[info.state]
        self.traceback = info.traceback or ""

    @property
    def task_result(self) -> Any:
        return default_task_backend.get_result(str(self.id))

    @property
    def task(self) -> Any:
        return self.task_result.task

    @property
    def worker_ids(self) -> list[str]:
        return list(self.task_result.worker_ids)


class Records:
    def __init__(self, find: Callable[[], list[int]]) -> None:
        self._find = find

    def __iter__(self) -> Iterator[Record]:
        return iter([Record(id) for id in self._find()])

    def count(self) -> int:
        return len(self._find())

    def update(self, *, run_after: datetime) -> None:
        """Only what an operator can do too."""
        assert run_after <= timezone.now()
        queue.run_now(self._find())


class Manager(Records):
    def __init__(self) -> None:
        super().__init__(lambda: _ids("waiting") + _ids("scheduled") + _ids("leased"))

    def all(self) -> Records:
        return self

    def using(self, alias: str) -> Records:
        return self

    def filter(self, *, id: str) -> Records:
        return Records(lambda: [int(id)])

    def get(self, *, id: str) -> Record:
        return Record(int(id))

    def ready(self) -> Records:
        return Records(lambda: _ids("waiting"))

    def failed(self) -> Records:
        return Records(lambda: _ids("dead"))

    def successful(self) -> Records:
        return Records(_completed)

    def create(self, *, args_kwargs: Any, task_path: str, backend_name: str) -> Record:
        call = {
            **args_kwargs,
            "task": task_path,
            "backend": backend_name,
            "queue": "default",
            "priority": 0,
            "enqueued_at": timezone.now().isoformat(),
        }
        return Record(queue.publish(call, kind="django.task").id)


class DBTaskResult:
    objects = Manager()


def _ids(state: Any) -> list[int]:
    return [info.id for info in queue.messages(state=state)]


def _completed() -> list[int]:
    found = []
    for id in range(1, queue.totals().published + 1):
        try:
            if default_task_backend.get_result(str(id)).status == "SUCCESSFUL":
                found.append(id)
        except TaskResultDoesNotExist:
            continue
    return found
