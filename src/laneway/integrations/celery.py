"""``delay`` and ``apply_async`` on a task of Laneway, for code that comes from Celery, which itself
is not needed.

>>> @celery_style
... @worker.task(queue="emails", keep_result=3600)
... def send_receipt(order: int, tenant: str) -> str: ...
>>> send_receipt.delay(9184, "tenant-42").get(timeout=10)
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar

from laneway.durations import Duration
from laneway.errors import NotEnded
from laneway.event import MessageEnd
from laneway.worker.tasks.task import Task

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

_STATES = {"waiting": "PENDING", "scheduled": "PENDING", "leased": "STARTED", "dead": "FAILURE"}
_ENDS = {"completed": "SUCCESS", "dead": "FAILURE"}


class CallResult:
    """As Celery's AsyncResult, as far as the queue knows: return values of tasks with
    ``keep_result``."""

    def __init__(self, id: int, client: Any) -> None:
        self._number = id
        self._client = client

    @property
    def id(self) -> str:
        """The message's number, as text."""
        return str(self._number)

    def get(self, timeout: Duration | None = None) -> Any:
        """Waits for the task and returns what it returned. Raises NotEnded after ``timeout``, and
        MessageDead and others if there is nothing to return; see ``queue.result``."""
        return self._client.result(self._number, timeout=timeout)

    @property
    def state(self) -> str:
        """PENDING, STARTED, SUCCESS, FAILURE, or REVOKED for one that ended without an attempt."""
        ending = self._ending()
        if ending is not None:
            return _ENDS.get(ending.outcome, "REVOKED")
        info = self._client.message(self._number)
        return "PENDING" if info is None else _STATES[info.state]

    status = state

    def ready(self) -> bool:
        return self._ending() is not None

    def successful(self) -> bool:
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        return self.state == "FAILURE"

    def revoke(self, terminate: bool = False) -> None:
        """Cancels it; with ``terminate`` also one that runs."""
        self._client.cancel([self._number], running=terminate)

    def _ending(self) -> MessageEnd | None:
        try:
            ending: MessageEnd = self._client.wait(self._number, timeout=0)
        except NotEnded:
            return None
        return ending

    def __repr__(self) -> str:
        return f"<CallResult {self._number}>"


class CeleryStyleTask(Generic[P, R]):
    """A task that can be called the way Celery's are. ``.task`` is Laneway's own."""

    def __init__(self, task: Task[P, R]) -> None:
        self.task = task

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function here and now, as with Celery."""
        return self.task(*args, **kwargs)

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> CallResult:
        """Publishes the call."""
        return CallResult(_id(self.task.publish(*args, **kwargs)), self.task.client)

    def apply_async(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        countdown: Duration | None = None,
        eta: datetime | None = None,
        expires: Duration | datetime | None = None,
        queue: str | None = None,
        priority: int | None = None,
        task_id: str | None = None,
        headers: Mapping[str, Any] | None = None,
        channel: str | None = None,
        connection: object = None,
    ) -> CallResult:
        """Publishes the call. ``task_id`` becomes the key: while a message with it is unfinished,
        the answer is that one. ``priority`` is 0 to 200, higher first. ``connection`` is your
        own, whose transaction the message then belongs to; ``channel`` is the tenant."""
        given: dict[str, Any] = {
            "delay": countdown,
            "at": eta,
            "expires_at" if isinstance(expires, datetime) else "expires_in": expires,
            "queue": queue,
            "priority": priority,
            "key": task_id,
            "headers": headers,
            "channel": channel,
        }
        # None would take back what the task itself says.
        options: Any = {name: value for name, value in given.items() if value is not None}
        view: Any = self.task.using(connection=connection, **options)
        return CallResult(_id(view.publish(*args, **(kwargs or {}))), self.task.client)


def celery_style(task: Task[P, R]) -> CeleryStyleTask[P, R]:
    """The task with ``delay`` and ``apply_async``; as a decorator, above the task's own."""
    return CeleryStyleTask(task)


def _id(published: Any) -> int:
    number: int = published.id
    return number
