"""``laneway_worker`` under the name and with the options of django-tasks-db's command."""

from argparse import ArgumentParser
from typing import Any

from laneway.integrations.django.management.commands import laneway_worker


class Command(laneway_worker.Command):
    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--queue-name", default="default")
        parser.add_argument("--no-startup-delay", action="store_false", dest="startup_delay")
        parser.add_argument("--interval", type=float)

    def handle(self, *args: Any, **options: Any) -> None:
        excluded = options["exclude_queues"]
        options["exclude_queues"] = [excluded] if isinstance(excluded, str) else excluded
        options["queue"] = [options["queue_name"]]
        options["until_empty"] = options["until_empty"] or options.get("batch", False)
        if name := options.get("backend_name"):
            options["backend"] = [name]
        options["stderr"] = options.get("stdout")
        super().handle(*args, **options)
