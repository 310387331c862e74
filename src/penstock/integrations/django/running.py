"""Runs Django's tasks in a Penstock worker."""

from typing import Any, TypedDict

from django.db import close_old_connections
from django.utils import timezone
from django.utils.module_loading import import_string

from penstock.client.sync_message import Message
from penstock.retry import Retry
from penstock.worker.outcomes import Fail
from penstock.worker.worker import Worker

from .task_api import Task, TaskContext, TaskResultStatus, new_result
from .tasks import KIND


class Call(TypedDict):
    """The payload of a task."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    backend: str


def handle_tasks(worker: Worker, retry: Retry | None = None) -> None:
    """Lets ``worker`` run the tasks of Django beside its own handlers.

    >>> handle_tasks(worker, retry=Exponential(first=1, most=300, attempts=8))
    """
    worker.handler(KIND, retry=retry, run="thread")(_run)


def _run(call: Call, message: Message) -> Fail | None:
    task = _find(call["task"])
    if task is None:
        return Fail(f"there is no task {call['task']!r} in this code")
    close_old_connections()
    try:
        context = [_context(task, call, message)] if task.takes_context else []
        task.call(*context, *call["args"], **call["kwargs"])
    finally:
        close_old_connections()
    return None


def _find(path: str) -> Any:
    """Only what was declared as a task is ever called."""
    try:
        found = import_string(path)
    except ImportError:
        return None
    return found if isinstance(found, Task) else None


def _context(task: Any, call: Call, message: Message) -> Any:
    result = new_result(
        task,
        str(message.id),
        call["backend"],
        call["args"],
        call["kwargs"],
        status=TaskResultStatus.RUNNING,
        started_at=timezone.now(),
        last_attempted_at=timezone.now(),
        worker_ids=[""] * message.attempt,  # its length is what the context calls the attempt
    )
    return TaskContext(task_result=result)
