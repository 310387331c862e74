"""A backend for Django's tasks: enqueued in the site's transaction, run by Penstock's worker.

>>> TASKS = {"default": {"BACKEND": "penstock.integrations.django.tasks.PenstockBackend"}}
"""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.module_loading import import_string

from .site import SiteQueue
from .task_api import BaseTaskBackend, new_result

KIND = "django.task"
_queue = SiteQueue()


class PenstockBackend(BaseTaskBackend):  # type: ignore[misc]
    """``OPTIONS["channel"]`` is the channel of all tasks, or the dotted path of a function
    ``(task, args, kwargs) -> str`` that names it, so that tenants are served fairly.

    Return values are not kept, so results cannot be read back; ``result.id`` is the message's id,
    for ``queue.wait()``, ``queue.history()`` and ``penstock show``.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = False
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._channel = _channel_of(self.options.get("channel", "default"))

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Publishes the call; the arguments must be JSON."""
        self.validate_task(task)
        published = _queue.publish(
            {"task": task.module_path, "args": list(args), "kwargs": kwargs, "backend": self.alias},
            kind=KIND,
            queue=task.queue_name,
            channel=self._channel(task, args, kwargs),
            priority=penstock_priority(task.priority),
            at=_aware(task.run_after),
        )
        return new_result(
            task, str(published.id), self.alias, list(args), kwargs, enqueued_at=timezone.now()
        )


def penstock_priority(priority: int) -> int:
    """Django's -100 to 100 as Penstock's 0 to 9, which starts at the default: 0 and below are 0."""
    return max(0, min(9, -(-priority * 9 // 100)))


def _aware(moment: Any) -> Any:
    return timezone.make_aware(moment) if moment is not None and moment.tzinfo is None else moment


def _channel_of(option: object) -> Callable[[Any, Any, Any], str]:
    if not isinstance(option, str) or not option:
        raise ImproperlyConfigured('OPTIONS["channel"] of a task backend must be a text')
    if "." not in option:
        return lambda task, args, kwargs: option
    return import_string(option)  # type: ignore[no-any-return]
