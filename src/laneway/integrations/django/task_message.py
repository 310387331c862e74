"""A task as a message: what is published for a call, and the result that it tells of."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from django.utils.module_loading import import_string

from .task_api import Task, TaskError, TaskResult, TaskResultStatus, normalize_json

KIND = "django.task"


def kind_of(alias: str) -> str:
    """Tasks of another backend are another kind: a worker may run the tasks of one alone."""
    return KIND if alias == "default" else f"{KIND}.{alias}"


@dataclass(frozen=True, slots=True)
class TaskCall:
    """The payload of a task's message."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    backend: str
    queue: str
    priority: int
    enqueued_at: str
    run_after: str | None = None
    channel: str | None = None
    key: str | None = None

    def find_task(self) -> Any:
        """Only what was declared as a task is ever called."""
        found = import_string(self.task)
        if not isinstance(found, Task):
            raise SuspiciousOperation(f"{self.task} is not a task")
        own = {name: value for name in ("channel", "key") if (value := getattr(self, name))}
        return found.using(
            priority=self.priority,
            queue_name=self.queue,
            run_after=_time(self.run_after),
            backend=self.backend,
            **own,
        )


def call_of(task: Any, alias: str, args: Any, kwargs: Any) -> TaskCall:
    """Raises TypeError or ValueError for what is not JSON. The arguments are those that the task
    will be given."""
    given = json.loads(json.dumps(normalize_json({"args": list(args), "kwargs": dict(kwargs)})))
    return TaskCall(
        task=task.module_path,
        args=given["args"],
        kwargs=given["kwargs"],
        backend=alias,
        queue=task.queue_name,
        priority=task.priority,
        enqueued_at=timezone.now().isoformat(),
        run_after=None if task.run_after is None else task.run_after.isoformat(),
        channel=getattr(task, "channel", None),
        key=getattr(task, "key", None),
    )


def result_of(task: Any, id: str, call: TaskCall, **known: Any) -> Any:
    """A result of which nothing is known yet but what ``known`` says."""
    value = known.pop("return_value", None)
    empty = dict.fromkeys(("started_at", "last_attempted_at", "finished_at"))
    result = TaskResult(
        task=task,
        id=id,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        enqueued_at=_time(call.enqueued_at),
        **{"status": TaskResultStatus.READY, "errors": [], "worker_ids": [], **empty, **known},
    )
    change(result, _return_value=value)
    return result


def change(result: Any, **values: Any) -> None:
    """Results are frozen for the site's code, but what happens to a task happens to its result."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def error_of(error_type: str | None, text: str | None, traceback: str | None) -> Any:
    """From what the queue keeps of an error."""
    path = error_type or "builtins.Exception"
    return TaskError(
        exception_class_path=path if "." in path else f"builtins.{path}",
        traceback=traceback or f"{error_type or 'Exception'}: {text or ''}\n",
    )


def site_time(moment: datetime | None) -> datetime | None:
    """As the site's settings want times."""
    if moment is None or settings.USE_TZ:
        return moment
    return timezone.make_naive(moment)  # type: ignore[no-any-return]


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
