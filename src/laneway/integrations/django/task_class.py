"""Laneway's own options of a task: its channel, its key, when it is retried.

>>> @task(channel="tenant-42", key="report", retry=Exponential(attempts=8))
... def report() -> None: ...
>>> report.using(channel="tenant-43").enqueue()
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from laneway.durations import Duration
from laneway.retry import Retry

from .task_api import DEFAULT_TASK_BACKEND_ALIAS, Task, task_backends

OWN_OPTIONS = ("channel", "key", "retry", "expires_in", "keep_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanewayTask(Task):  # type: ignore[misc]
    """What is None is as ``OPTIONS`` of the backend say.

    While a message with this ``key`` is unfinished in the queue, ``enqueue`` answers that one.
    ``expires_in``: the task is not begun later than that after it was enqueued. ``keep_result``:
    how long the return value can be read.
    """

    channel: str | None = None
    key: str | None = None
    retry: Retry | None = None
    expires_in: Duration | None = None
    keep_result: Duration | None = None

    def using(self, **changes: Any) -> Any:
        """As Django's, and for Laneway's options."""
        own = {name: changes.pop(name) for name in OWN_OPTIONS if name in changes}
        # Not super(): a dataclass with slots is another class than the one that was written here.
        changed = Task.using(self, **changes)
        return replace(changed, **own) if own else changed


def task(
    function: Callable[..., Any] | None = None,
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    **options: Any,
) -> Any:
    """Django's decorator, which takes the options of a backend's task class only since 6.1."""

    def declare(function: Callable[..., Any]) -> Any:
        return task_backends[backend].task_class(func=function, backend=backend, **options)

    return declare if function is None else declare(function)
