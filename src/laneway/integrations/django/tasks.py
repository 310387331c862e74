"""A backend for Django's tasks: enqueued in the site's transaction, run by Laneway's worker.

>>> TASKS = {"default": {"BACKEND": "laneway.integrations.django.tasks.LanewayBackend"}}

A task has Laneway's own options, too: its channel, its key, when it is retried.

>>> @task(channel="tenant-42", key="report", retry=Exponential(attempts=8))
... def report() -> None: ...
>>> report.using(channel="tenant-43").enqueue()
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from django.utils.connection import ConnectionDoesNotExist
from django.utils.module_loading import import_string

from laneway.durations import Duration
from laneway.model import KeyScope
from laneway.retry import NoRetry, Retry

from .database_url import url_of
from .site_queue import SETTINGS, SiteQueue, queue_connection, site_settings
from .task_api import (
    DEFAULT_TASK_BACKEND_ALIAS,
    BaseTaskBackend,
    Task,
    TaskResultDoesNotExist,
    task_backends,
    task_enqueued,
)
from .task_message import TaskCall, call_of, find_result, kind_of, result_of

__all__ = ["LanewayBackend", "LanewayTask", "task"]

OPTIONS = ("channel", "retry", "lowest_priority", "keep_result")


def check_backend(backend: Any) -> Iterator[checks.CheckMessage]:
    if not apps.is_installed("laneway.integrations.django"):
        yield checks.Error(
            f"the task backend {backend.alias!r} needs the app of Laneway",
            hint="Add 'laneway.integrations.django' to INSTALLED_APPS and run migrate.",
            id="laneway.E001",
        )
    yield from _check_database()
    for name in sorted(set(backend.options) - set(OPTIONS)):
        yield checks.Warning(
            f"OPTIONS of the task backend {backend.alias!r} has {name!r}, which is not known",
            hint=f"Known are {', '.join(OPTIONS)}.",
            id="laneway.W001",
        )


def _check_database() -> Iterator[checks.CheckMessage]:
    try:
        url_of(queue_connection())
    except ConnectionDoesNotExist as error:
        yield checks.Error(
            f"LANEWAY['database']: {error}",
            hint="Name a database of DATABASES.",
            id="laneway.E002",
        )
    except ImproperlyConfigured as error:
        yield checks.Error(str(error), id="laneway.E003")
    for name in sorted(set(site_settings()) - set(SETTINGS)):
        yield checks.Warning(
            f"LANEWAY has {name!r}, which is not known",
            hint=f"Known are {', '.join(SETTINGS)}.",
            id="laneway.W002",
        )


OWN_OPTIONS = ("channel", "key", "key_scope", "retry", "limits", "expires_in", "keep_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanewayTask(Task):  # type: ignore[misc]
    """What is None is as ``OPTIONS`` of the backend say.

    While a call of this task with this ``key`` is unfinished in its channel, ``enqueue`` answers
    that one; with ``key_scope`` of any task in the "channel" or in the "queue".
    ``limits``: names of shared limits (``queue.limits``) that it starts behind. ``expires_in``: the
    task is not begun later than that after it was enqueued. ``keep_result``: how long the return
    value can be read.
    """

    channel: str | None = None
    key: str | None = None
    key_scope: KeyScope = "kind"
    retry: Retry | None = None
    limits: tuple[str, ...] = ()
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


KEEP_RESULT = timedelta(days=1)
DJANGO_LOWEST, DJANGO_HIGHEST = -100, 100
"""The priorities of tasks, of which a channel has as many: its own begin at 0."""

_queue = SiteQueue()


class LanewayBackend(BaseTaskBackend):  # type: ignore[misc]
    """``OPTIONS``, for all tasks that do not say otherwise themselves:

    - ``channel``: the channel, or the dotted path of a function ``(task, args, kwargs) -> str``
      that names it, so that tenants are served fairly
    - ``retry``: a strategy or its dotted path; without one a failed task is not run again, as
      Django's contract says
    - ``lowest_priority``: that the site's tasks have, -100 unless this says otherwise; tasks of the
      lowest cost least, and one below it goes with it
    - ``keep_result``: how long what became of a task can be read after it succeeded, a day unless
      this says otherwise; 0 keeps nothing. Failed ones can be read until they are removed
    """

    task_class = LanewayTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._channel = _channel_of(self.options.get("channel", "default"))
        self._keep_result = self.options.get("keep_result", KEEP_RESULT)
        self._lowest = _lowest_of(self.options.get("lowest_priority", DJANGO_LOWEST))
        self.retry = _retry_of(self.options.get("retry"))

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Publishes the call; the arguments must be JSON."""
        result, new = self._publish(task, args, kwargs)
        if new:
            task_enqueued.send(type(self), task_result=result)
        return result

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """As enqueue; receivers of the signal may be async."""
        # In the thread of the site's connection: it may be in a transaction.
        result, new = await sync_to_async(self._publish)(task, args, kwargs)
        if new:
            if hasattr(task_enqueued, "asend"):
                await task_enqueued.asend(type(self), task_result=result)
            else:  # before Django 5 no receiver is async
                await sync_to_async(task_enqueued.send)(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Raises TaskResultDoesNotExist also when the result is no longer kept."""
        return find_result(_queue, self.alias, result_id)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        return [*super().check(**kwargs), *check_backend(self)]

    def _publish(self, task: Any, args: Any, kwargs: Any) -> tuple[Any, bool]:
        """And whether it is new: with a key there may be one already, whose result this is."""
        self.validate_task(task)
        # First, so that what cannot be reported is not published.
        call = call_of(task, self.alias, args, kwargs)
        published = _queue.publish(asdict(call), **self._options(task, call))
        if published.existing:
            with suppress(TaskResultDoesNotExist):  # it has ended since
                return self.get_result(str(published.id)), False
        return result_of(task, str(published.id), call), not published.existing

    def _options(self, task: Any, call: TaskCall) -> dict[str, Any]:
        return {
            "kind": kind_of(self.alias),
            "queue": task.queue_name,
            "channel": call.channel or self._channel(task, call.args, call.kwargs),
            **_key_of(call),
            "priority": max(0, task.priority - self._lowest),
            "at": _aware(task.run_after),
            "limits": getattr(task, "limits", ()) or None,
            "expires_in": getattr(task, "expires_in", None),
            "keep_result": self._kept_for(task),
        }

    def _kept_for(self, task: Any) -> Duration | None:
        own = getattr(task, "keep_result", None)
        return (self._keep_result if own is None else own) or None


def _key_of(call: TaskCall) -> dict[str, Any]:
    """All tasks of a backend are of one kind: the name of the task keeps their keys apart."""
    if call.key is None:
        return {}
    if call.key_scope == "kind":
        return {"key": f"{call.task}:{call.key}"}
    return {"key": call.key, "key_scope": call.key_scope}


def _aware(moment: Any) -> Any:
    return timezone.make_aware(moment) if moment is not None and moment.tzinfo is None else moment


def _channel_of(option: object) -> Callable[[Any, Any, Any], str]:
    if not isinstance(option, str) or not option:
        raise ImproperlyConfigured('OPTIONS["channel"] of a task backend must be a text')
    if "." not in option:
        return lambda task, args, kwargs: option
    return import_string(option)  # type: ignore[no-any-return]


def _lowest_of(option: object) -> int:
    if type(option) is not int or not DJANGO_LOWEST <= option <= DJANGO_HIGHEST:
        raise ImproperlyConfigured(
            f'OPTIONS["lowest_priority"] of a task backend is {option!r}: give the lowest priority '
            f"that your tasks have, {DJANGO_LOWEST} to {DJANGO_HIGHEST}"
        )
    return option


def _retry_of(option: object) -> Retry:
    found: Any = import_string(option) if isinstance(option, str) else option
    if found is None:
        return NoRetry()
    if isinstance(found, type) or not hasattr(found, "delay"):
        raise ImproperlyConfigured(
            'OPTIONS["retry"] of a task backend must be a strategy such as '
            "laneway.Exponential(attempts=8), or the dotted path of one"
        )
    return found  # type: ignore[no-any-return]
