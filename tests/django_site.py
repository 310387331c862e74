"""A Django site for the tests: ``python -m tests.django_site CASE`` tells in JSON what it saw.

Settings hold for a whole process, so each case is one of its own. OPTIONS are the database's, as
JSON; JOBS is LANEWAY["worker"].
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.core.management import execute_from_command_line

address = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY="only for tests",
    INSTALLED_APPS=["laneway.integrations.django"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": address.path[1:],
            "HOST": address.hostname,
            "PORT": address.port,
            "USER": unquote(address.username or ""),
            "PASSWORD": unquote(address.password or ""),
            "OPTIONS": json.loads(os.environ.get("OPTIONS", "{}")),
        }
    },
    LANEWAY={"worker": os.environ["JOBS"]} if "JOBS" in os.environ else {},
    USE_TZ=True,
)
django.setup()

from django.db import transaction  # noqa: E402

from laneway import Message, NewMessage, Worker  # noqa: E402
from laneway.errors import BacklogFull  # noqa: E402
from laneway.integrations.django import queue  # noqa: E402


class Rollback(Exception):
    """Leaves the transaction."""


def waiting() -> dict[str, int]:
    return {f"{n.queue} {n.channel}": n.waiting for n in queue.channel_stats() if n.waiting}


def refusal() -> Any:
    """One of two channels is full, outside of a transaction."""
    queue.channel("full").limit(backlog=0)
    try:
        queue.publish_many([NewMessage(1, channel="full"), NewMessage(2, channel="free")])
    except BacklogFull as error:
        return {"statuses": [r.status for r in error.results], "waiting": waiting()}
    return "published"


def rollback() -> Any:
    """What belongs to a transaction that does not commit."""
    queue.topic("orders").subscribe("receipts")
    queue.schedule("kept", every=timedelta(days=1))
    with suppress(Rollback), transaction.atomic():
        queue.topic("orders").publish(1)
        queue.topic("orders").publish_many([2, 3])
        queue.topic("orders").subscribe("statistics")
        queue.topic("orders").unsubscribe("receipts")
        queue.schedule("gone", every=timedelta(days=1))
        queue.schedules.remove("kept")
        raise Rollback
    queue.topic("orders").publish(4)
    return {
        "waiting": waiting(),
        "subscribed": [s.queue for s in queue.subscriptions()],
        "schedules": [s.name for s in queue.schedules.list()],
    }


def topic_refusal() -> Any:
    queue.topic("orders").subscribe("receipts")
    queue.topic("orders").subscribe("statistics", channel="full")
    queue.channel("full", queue="statistics").limit(backlog=0)
    try:
        queue.topic("orders").publish(1)
    except BacklogFull as error:
        return {"statuses": [r.status for r in error.results], "waiting": waiting()}
    return "published"


def test_run() -> Any:
    """As ``manage.py test`` does it, with copies for processes side by side."""
    from django.test import TestCase
    from django.test.runner import DiscoverRunner

    seen = []

    class Test(TestCase):  # type: ignore[misc]
        def test_the_queue(self) -> None:
            queue.publish(1)
            seen.append(len(queue.stats()))

    runner = DiscoverRunner(verbosity=0, interactive=False, parallel=2)
    kept = runner.setup_databases()
    try:
        Test("test_the_queue").debug()
    finally:
        runner.teardown_databases(kept)
    return seen


worker = Worker(queue.client)


@worker.default_handler
def tell(payload: str, message: Message) -> None:
    at_once = worker.definition().options.concurrency
    sys.stdout.write(f"{message.queue} {payload}, one of {at_once}\n")


def mail() -> Any:
    queue.publish("first")
    queue.publish("second", queue="emails")


CASES: dict[str, Callable[[], Any]] = {
    "refusal": refusal,
    "topic refusal": topic_refusal,
    "rollback": rollback,
    "test run": test_run,
    "mail": mail,
}


if __name__ == "__main__":
    if sys.argv[1] in CASES:
        execute_from_command_line([sys.argv[0], "migrate", "--verbosity", "0"])
        sys.stdout.write(json.dumps(CASES[sys.argv[1]]()))
    else:
        execute_from_command_line(sys.argv)
