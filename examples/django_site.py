"""A Django site in one file: the app, publishing in its transaction, and tasks.

DATABASE_URL=postgresql://localhost/shop python examples/django_site.py migrate
DATABASE_URL=postgresql://localhost/shop python examples/django_site.py shop
DATABASE_URL=postgresql://localhost/shop python examples/django_site.py laneway_worker
"""

import os
import sys
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.core.management import execute_from_command_line

address = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY="only for the example",
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
    TASKS={
        "default": {
            "BACKEND": "laneway.integrations.django.tasks.LanewayBackend",
            "OPTIONS": {"channel": "django_site.tenant_of"},
            "QUEUES": ["default"],
        }
    },
    USE_TZ=True,
)
sys.modules["django_site"] = sys.modules[__name__]  # what other modules import it as
django.setup()

from django.db import transaction  # noqa: E402
from django_tasks import TaskContext, task  # noqa: E402

from laneway.integrations.django import queue  # noqa: E402


def tenant_of(task: object, args: list[object], kwargs: dict[str, object]) -> str:
    return str(kwargs.get("tenant", "default"))


@task(takes_context=True, priority=50)
def send_receipt(context: TaskContext, order: int, tenant: str) -> None:
    print(f"receipt for order {order} of {tenant}, attempt {context.attempt}", flush=True)


@task()
async def greet(name: str) -> None:
    print(f"hello {name}", flush=True)


def shop() -> None:
    """Three tasks in transactions, one of which is rolled back, and an ordinary message."""
    with transaction.atomic():
        send_receipt.enqueue(order=1, tenant="tenant-42")
        greet.enqueue("tenant-42")
    try:
        with transaction.atomic():
            send_receipt.enqueue(order=2, tenant="tenant-42")
            raise RuntimeError("the card was declined")
    except RuntimeError as error:
        print(f"rolled back: {error}")
    queue.publish({"no": "task"}, queue="other", channel="tenant-42")
    print(f"waiting: { {n.queue: n.waiting for n in queue.stats()} }", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["shop"]:
        shop()
    else:
        execute_from_command_line(sys.argv)
