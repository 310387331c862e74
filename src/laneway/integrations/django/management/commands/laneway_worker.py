"""``manage.py laneway_worker``: runs the site's handlers and Django's tasks."""

import logging
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError
from django.utils.autoreload import run_with_reloader
from django.utils.module_loading import import_string

from laneway.errors import LanewayError
from laneway.integrations.django import queue
from laneway.integrations.django.site_queue import site_settings
from laneway.integrations.django.task_api import TASKS_LOGGER, InvalidTaskBackend, task_backends
from laneway.integrations.django.task_runner import handle_tasks, laneway_backends
from laneway.integrations.django.tasks import LanewayBackend
from laneway.worker.worker import Worker

CONCURRENCY = 20
"""Of the worker for Django's tasks alone: each of them takes a connection of Django's."""

ALL = "*"
WORKER_ID_LENGTH = 64
LEVELS = {0: logging.CRITICAL, 1: logging.INFO}


class Command(BaseCommand):  # type: ignore[misc]
    help = (
        "Runs Laneway's worker until SIGTERM or Ctrl-C. With LANEWAY = {'worker': "
        "'shop.jobs.worker'} that one, with its handlers; else one for Django's tasks alone. "
        "--queue and --concurrency override what that worker was made with."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queue",
            action="append",
            help="what to claim from; repeatable, or several with commas; '*' is every queue of "
            "the task backends and every queue that has messages at the start",
        )
        parser.add_argument(
            "--exclude-queues",
            action="append",
            default=[],
            help="with --queue '*': all but these; repeatable, or several with commas",
        )
        parser.add_argument("--concurrency", type=int, help="how many handlers at once")
        parser.add_argument(
            "--until-empty",
            "--batch",
            action="store_true",
            help="stop when nothing is left to claim",
        )
        parser.add_argument(
            "--max-tasks", type=_count, help="stop after so many tasks and other messages"
        )
        parser.add_argument(
            "--worker-id", type=_worker_id, help="the worker's name; no other may have it"
        )
        parser.add_argument(
            "--backend",
            action="append",
            type=_backend,
            help="run only the tasks of this alias in TASKS; repeatable",
        )
        parser.add_argument(
            "--reload", action="store_true", help="start again when code changes; for development"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["exclude_queues"] and ALL not in _split(options["queue"] or ()):
            raise CommandError("--exclude-queues can only be used with --queue '*'")
        if options["reload"] and options["until_empty"]:
            raise CommandError("--reload and --until-empty cannot be used together")
        with _logs_shown(options["verbosity"], options.get("stderr") or sys.stderr):
            if options["reload"]:
                run_with_reloader(self._run, options)
            else:
                self._run(options)

    def _run(self, options: dict[str, Any]) -> None:
        try:
            worker = _found_worker()
            backends = options["backend"] or laneway_backends()
            worker.override(
                queues=_queues(options, backends),
                concurrency=options["concurrency"],
                name=options["worker_id"],
            )
            handle_tasks(worker, backends=backends)
            worker.run(until_empty=options["until_empty"], max_messages=options["max_tasks"])
        except LanewayError as error:
            raise CommandError(str(error)) from error


@contextmanager
def _logs_shown(verbosity: int, stream: TextIO) -> Iterator[None]:
    """What the worker does is logged; a site that configures no logging sees it all the same,
    so that a worker that has begun does not look like one that hangs."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    loggers = [logging.getLogger(name) for name in ("laneway", TASKS_LOGGER)]
    silent = [(logger, logger.level) for logger in loggers if not logger.hasHandlers()]
    for logger, _ in silent:
        logger.addHandler(handler)
        logger.setLevel(LEVELS.get(verbosity, logging.DEBUG))
    try:
        yield
    finally:
        for logger, level in silent:
            logger.removeHandler(handler)
            logger.setLevel(level)


def _found_worker() -> Worker:
    path = site_settings().get("worker")
    if path is None:
        return Worker(queue.client, concurrency=CONCURRENCY)
    found = import_string(path)
    if not isinstance(found, Worker):
        raise CommandError(f"LANEWAY['worker'] is {path!r}, which is not a laneway.Worker")
    return found


def _queues(options: dict[str, Any], backends: list[str]) -> list[str] | None:
    """None leaves the worker its own."""
    if options["queue"] is None:
        return None
    names = _split(options["queue"])
    if ALL not in names:
        return names
    known = {name for alias in backends for name in task_backends[alias].queues}
    known |= {stats.queue for stats in queue.stats()} | {queue.client.name}
    return sorted(known - set(_split(options["exclude_queues"])))


def _split(names: Any) -> list[str]:
    return [name for text in names for name in text.split(",") if name]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError("Must be greater than zero")
    return number


def _worker_id(text: str) -> str:
    if not text:
        raise ArgumentTypeError("Worker id must not be empty")
    if len(text) > WORKER_ID_LENGTH:
        raise ArgumentTypeError("Worker ids must be shorter than 64 characters")
    return text


def _backend(alias: str) -> str:
    try:
        backend = task_backends[alias]
    except InvalidTaskBackend as error:
        raise ArgumentTypeError(str(error)) from error
    if not isinstance(backend, LanewayBackend):
        raise ArgumentTypeError(f"Backend '{alias}' is not a Laneway backend")
    return alias
