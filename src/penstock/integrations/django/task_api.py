"""Django's task interface: its own since Django 6, the backport ``django-tasks`` before."""

from typing import Any

try:
    from django.tasks import Task, TaskContext, TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
except ImportError:
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskResult, TaskResultStatus

__all__ = ["BaseTaskBackend", "Task", "TaskContext", "TaskResult", "TaskResultStatus", "new_result"]


def new_result(task: Any, id: str, alias: str, args: Any, kwargs: Any, **known: Any) -> Any:
    """A result of which nothing is known yet but what ``known`` says."""
    empty = dict.fromkeys(("enqueued_at", "started_at", "last_attempted_at", "finished_at"))
    return TaskResult(
        task=task,
        id=id,
        args=args,
        kwargs=kwargs,
        backend=alias,
        **{"status": TaskResultStatus.READY, "errors": [], "worker_ids": [], **empty, **known},
    )
