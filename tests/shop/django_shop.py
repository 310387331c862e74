"""A shop on Django and its tasks, in one file. A task may run twice, as taskiq's may."""

import os
import sys
from typing import Any
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings

address = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY="only for tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django_tasks", "laneway.integrations.django"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": address.path[1:],
            "HOST": address.hostname,
            "PORT": address.port,
            "USER": unquote(address.username or ""),
            "PASSWORD": unquote(address.password or ""),
        }
    },
    TASKS={"default": {"BACKEND": "laneway.integrations.django.tasks.LanewayBackend"}},
    LANEWAY={"worker": f"{__name__}.worker"},
    USE_TZ=True,
)
sys.modules.setdefault("tests.shop.django_shop", sys.modules[__name__])
django.setup()

from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.management import execute_from_command_line  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402

from laneway import Queue, Worker  # noqa: E402
from laneway.integrations.django.tasks import task  # noqa: E402

worker = Worker(Queue(os.environ["DATABASE_URL"]), concurrency=5, lease=2)


@task
def receipt(order: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into shop_receipt values (%s) on conflict do nothing", [order])


def place_order(request: HttpRequest, order: int) -> Any:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("insert into shop_order values (%s)", [order])
        receipt.using(channel=f"tenant-{order % 5}").enqueue(order)
    return JsonResponse({"order": order})


urlpatterns = [path("orders/<int:order>", place_order)]
app = get_asgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
