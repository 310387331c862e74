"""Django's task interface: its own since Django 6, the package ``django-tasks`` before."""

from laneway.extras import needs

try:
    from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, default_task_backend, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    TASKS_LOGGER = "django.tasks"
except ImportError:
    with needs("a task backend", "Django 6 or django-tasks", "django-tasks"):
        from django_tasks import DEFAULT_TASK_BACKEND_ALIAS, default_task_backend, task_backends
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
        from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
        from django_tasks.exceptions import InvalidTaskError as InvalidTask
        from django_tasks.exceptions import TaskResultDoesNotExist
        from django_tasks.signals import task_enqueued, task_finished, task_started
        from django_tasks.utils import normalize_json

        TASKS_LOGGER = "django_tasks"

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "TASKS_LOGGER",
    "BaseTaskBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "default_task_backend",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
