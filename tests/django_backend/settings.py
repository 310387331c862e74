"""Settings of a Django site whose tasks are Laneway's, on the database at DATABASE_URL."""

import os
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

if os.environ["DATABASE_URL"].startswith("mysql"):
    import pymysql

    pymysql.install_as_MySQLdb()

address = urlsplit(os.environ["DATABASE_URL"])
ENGINES = {"postgresql": "postgresql", "sqlite": "sqlite3", "mysql": "mysql"}
NAME = unquote(address.path[1:])

SECRET_KEY = "only for tests"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *([] if find_spec("django.tasks") else ["django_tasks"]),
    "laneway.integrations.django",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "tests.django_backend.urls"
DATABASES = {
    "default": {
        "ENGINE": f"django.db.backends.{ENGINES[address.scheme]}",
        "NAME": NAME,
        "HOST": address.hostname or "",
        "PORT": address.port or "",
        "USER": unquote(address.username or ""),
        "PASSWORD": unquote(address.password or ""),
        "TEST": {"NAME": f"{NAME}_test"},
    }
}
TASKS = {
    "default": {
        "BACKEND": "laneway.integrations.django.tasks.LanewayBackend",
        "QUEUES": ["default", "mail", "rare"],
    },
    "second": {
        "BACKEND": "laneway.integrations.django.tasks.LanewayBackend",
        "OPTIONS": {
            "channel": "tests.django_backend.jobs.tenant_of",
            "retry": "tests.django_backend.jobs.twice",
            "lowest_priority": 0,
        },
    },
    "elsewhere": {
        "BACKEND": f"{'django.tasks' if find_spec('django.tasks') else 'django_tasks'}"
        ".backends.dummy.DummyBackend"
    },
}
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
