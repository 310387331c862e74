"""Laneway's backend as Django's tests expect its own two to be: one whose tasks can be counted, one
that runs a task before ``enqueue`` returns. What is tested is Laneway's publishing, worker and
results."""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.management import call_command

from laneway.inspection import MessageFilter
from laneway.integrations.django import queue
from laneway.integrations.django.task_message import kind_of
from laneway.integrations.django.tasks import LanewayBackend


class CountedBackend(LanewayBackend):
    @property
    def results(self) -> list[Any]:
        wanted = MessageFilter(kind=kind_of(self.alias))
        found = queue.read(lambda engine: engine.inspection.messages(wanted, 1000, 0))
        return [self.get_result(str(info.id)) for info in found]

    def clear(self) -> None:
        queue.cancel([info.id for info in queue.messages()])


class RunningBackend(LanewayBackend):
    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        call_command("laneway_worker", until_empty=True, verbosity=0, concurrency=1)
        result.refresh()
        return result

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        return await sync_to_async(self.enqueue)(task, args, kwargs)
