"""Runs Django's tasks in a Laneway worker."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import close_old_connections
from django.utils import timezone

from laneway.client.shared.error_text import rendered
from laneway.client.sync.message import Message
from laneway.durations import check_duration
from laneway.retry import FailedAttempt, Retry
from laneway.worker.outcomes import Fail
from laneway.worker.worker import Worker

from .site_queue import SiteQueue
from .task_api import (
    InvalidTaskBackend,
    TaskContext,
    TaskError,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from .task_message import (
    TaskCall,
    change,
    earlier_attempts,
    errors_of,
    kept,
    kind_of,
    result_of,
    site_time,
)
from .tasks import LanewayBackend

_log = logging.getLogger("laneway.worker")
_queue = SiteQueue()


def handle_tasks(
    worker: Worker, retry: Retry | None = None, backends: Iterable[str] | None = None
) -> None:
    """Lets ``worker`` run the tasks of Django beside its own handlers: those of all backends that
    are Laneway's, or of these. ``retry`` is for tasks and backends that have none.

    >>> handle_tasks(worker, retry=Exponential(initial=1, max_delay=300, attempts=8))
    """
    for alias in laneway_backends() if backends is None else backends:
        if kind_of(alias) not in worker.kinds:
            handler = _handler(lambda: worker.name, retry)
            worker.handler(kind_of(alias), retry=_Decided(), run="thread")(handler)


def laneway_backends() -> list[str]:
    """The aliases in ``TASKS`` whose backend is Laneway's."""
    return [alias for alias in task_backends if isinstance(_backend(alias), LanewayBackend)]


def _backend(alias: str) -> Any:
    """None for one that cannot be had: ``manage.py check`` says so, and the others work."""
    try:
        return task_backends[alias]
    except InvalidTaskBackend as error:
        _log.warning("the task backend %r is left out: %s", alias, error)
        return None


class _Decided:
    """The delay that was decided where the task is known."""

    def delay(self, failed: FailedAttempt) -> timedelta | None:
        return getattr(failed.error, "_laneway_delay", None)


def _handler(worker_name: Callable[[], str], retry: Retry | None) -> Callable[..., Any]:
    def run_task(call: TaskCall, message: Message) -> Any:
        close_old_connections()
        try:
            return _run(call, message, worker_name(), retry)
        finally:
            close_old_connections()

    return run_task


def _run(call: TaskCall, message: Message, worker: str, retry: Retry | None) -> Any:
    try:
        task = call.find_task()
    except (ImportError, SuspiciousOperation) as error:
        _log.error("message %d: there is no task %s in this code", message.id, call.task)
        return Fail(f"there is no task {call.task!r} in this code", error=error)
    backend = task.get_backend()
    result = _running(task, call, message, worker)
    task_started.send(type(backend), task_result=result)
    try:
        context = [TaskContext(task_result=result)] if task.takes_context else []
        value = _json(call, task.call(*context, *call.args, **call.kwargs))
    except BaseException as error:  # sys.exit() too: it ends the task, not the worker
        strategy = getattr(task, "retry", None) or retry or getattr(backend, "retry", None)
        delay = _delay(strategy, message, error)
        error._laneway_delay = delay  # type: ignore[attr-defined]
        result.errors.append(_error(error))
        if delay is None:
            change(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
            task_finished.send(type(backend), task_result=result)
        raise
    now = timezone.now()
    change(result, status=TaskResultStatus.SUCCESSFUL, finished_at=now, _return_value=value)
    task_finished.send(type(backend), task_result=result)
    return kept(call, result)


def _running(task: Any, call: TaskCall, message: Message, worker: str) -> Any:
    before: Sequence[Any] = ()
    if message.attempt > 1:
        before = earlier_attempts(_queue.client.history(message.id))
    # As many workers as attempts, also if the history is not kept: Django counts them.
    workers = [""] * (message.attempt - 1 - len(before)) + [entry.worker or "" for entry in before]
    now = timezone.now()
    return result_of(
        task,
        str(message.id),
        call,
        status=TaskResultStatus.RUNNING,
        started_at=site_time(before[0].started_at or before[0].claimed_at) if before else now,
        last_attempted_at=now,
        worker_ids=[*workers, worker],
        errors=errors_of(before),
    )


def _json(call: TaskCall, value: Any) -> Any:
    try:
        return normalize_json(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"what {call.task} returned is not JSON serializable: {error}") from error


def _delay(retry: Retry | None, message: Message, error: BaseException) -> timedelta | None:
    if retry is None or message.failures + 1 >= message.max_attempts:
        return None
    age = timezone.now() - message.published_at
    delay = retry.delay(FailedAttempt(message.failures + 1, error, age))
    return None if delay is None else check_duration("the delay of the retry", delay)


def _error(error: BaseException) -> Any:
    kind = type(error)
    return TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
        traceback=rendered(error, error.__traceback__),
    )
