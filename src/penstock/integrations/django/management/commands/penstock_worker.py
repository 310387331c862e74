"""``manage.py penstock_worker``: runs the site's handlers and Django's tasks."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from penstock.errors import PenstockError
from penstock.integrations.django import queue
from penstock.integrations.django.running import handle_tasks
from penstock.worker.worker import Worker

CONCURRENCY = 20
"""Of the worker for Django's tasks alone: each of them takes a connection of Django's."""


class Command(BaseCommand):  # type: ignore[misc]
    help = (
        "Runs Penstock's worker until SIGTERM or Ctrl-C. With PENSTOCK = {'worker': "
        "'shop.jobs.worker'} that one, with its handlers; else one for Django's tasks alone. "
        "--queue and --concurrency override what that worker was made with."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queue", action="append", help="what to claim from; repeatable")
        parser.add_argument("--concurrency", type=int, help="how many handlers at once")
        parser.add_argument(
            "--until-empty", action="store_true", help="stop when nothing is left to claim"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            worker = _worker(options["queue"], options["concurrency"])
            handle_tasks(worker)
            worker.run(until_empty=options["until_empty"])
        except PenstockError as error:
            raise CommandError(str(error)) from error


def _worker(queues: list[str] | None, concurrency: int | None) -> Worker:
    worker = _found_worker()
    worker.override(queues=queues, concurrency=concurrency)
    return worker


def _found_worker() -> Worker:
    path = getattr(settings, "PENSTOCK", {}).get("worker")
    if path is None:
        return Worker(queue.client, concurrency=CONCURRENCY)
    found = import_string(path)
    if not isinstance(found, Worker):
        raise CommandError(f"PENSTOCK['worker'] is {path!r}, which is no penstock.Worker")
    return found
