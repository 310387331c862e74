"""Settings for the suites of others, on the SQLite file SUITE_DATABASE."""

import os

SECRET_KEY = "only for tests"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "laneway.integrations.django",
    "django_tasks_db",
]
NAME = os.environ["SUITE_DATABASE"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": NAME,
        "OPTIONS": {"timeout": 30},
        "TEST": {"NAME": f"{NAME}.test"},
    }
}
TASKS = {
    "default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "queue-1"]},
    "dummy": {"BACKEND": "django.tasks.backends.dummy.DummyBackend"},
}
USE_TZ = True
# No page of the admin is shown here.
SILENCED_SYSTEM_CHECKS = ["admin.E403", "admin.E408", "admin.E409", "admin.E410"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
