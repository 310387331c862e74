"""System checks of a task backend: ``manage.py check`` says what would fail at the first task."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.connection import ConnectionDoesNotExist

from .database_url import url_of
from .site_queue import SETTINGS, queue_connection, site_settings

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
