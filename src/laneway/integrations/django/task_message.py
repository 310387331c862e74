"""A task as a message, and what became of it."""

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from django.utils.module_loading import import_string

from laneway.event import StoredResult
from laneway.inspection import MessageInfo
from laneway.model import HistoryEntry, KeyScope

from .site_queue import SiteQueue
from .task_api import (
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
)

KIND = "django.task"


def kind_of(alias: str) -> str:
    """Tasks of another backend are another kind: a worker may run the tasks of one alone."""
    return KIND if alias == "default" else f"{KIND}.{alias}"


@dataclass(frozen=True, slots=True)
class TaskCall:
    """The payload of a task's message."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    backend: str
    queue: str
    priority: int
    enqueued_at: str
    run_after: str | None = None
    channel: str | None = None
    key: str | None = None
    key_scope: KeyScope = "kind"

    def find_task(self) -> Any:
        """Only what was declared as a task is ever called."""
        found = import_string(self.task)
        if not isinstance(found, Task):
            raise SuspiciousOperation(f"{self.task} is not a task")
        own = {name: value for name in ("channel", "key") if (value := getattr(self, name))}
        if self.key_scope != "kind":
            own["key_scope"] = self.key_scope
        return found.using(
            priority=self.priority,
            queue_name=self.queue,
            run_after=_time(self.run_after),
            backend=self.backend,
            **own,
        )


def call_of(task: Any, alias: str, args: Any, kwargs: Any) -> TaskCall:
    """Raises TypeError or ValueError for what is not JSON. The arguments are those that the task
    will be given."""
    given = json.loads(json.dumps(normalize_json({"args": list(args), "kwargs": dict(kwargs)})))
    return TaskCall(
        task=task.module_path,
        args=given["args"],
        kwargs=given["kwargs"],
        backend=alias,
        queue=task.queue_name,
        priority=task.priority,
        enqueued_at=timezone.now().isoformat(),
        run_after=None if task.run_after is None else task.run_after.isoformat(),
        channel=getattr(task, "channel", None),
        key=getattr(task, "key", None),
        key_scope=getattr(task, "key_scope", "kind"),
    )


def result_of(task: Any, id: str, call: TaskCall, **known: Any) -> Any:
    """A result of which nothing is known yet but what ``known`` says."""
    value = known.pop("return_value", None)
    empty = dict.fromkeys(("started_at", "last_attempted_at", "finished_at"))
    result = TaskResult(
        task=task,
        id=id,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        enqueued_at=_time(call.enqueued_at),
        **{"status": TaskResultStatus.READY, "errors": [], "worker_ids": [], **empty, **known},
    )
    change(result, _return_value=value)
    return result


def change(result: Any, **values: Any) -> None:
    """Results are frozen for the site's code, but what happens to a task happens to its result."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def error_of(error_type: str | None, text: str | None, traceback: str | None) -> Any:
    """From what the queue keeps of an error."""
    path = error_type or "builtins.Exception"
    return TaskError(
        exception_class_path=path if "." in path else f"builtins.{path}",
        traceback=traceback or f"{error_type or 'Exception'}: {text or ''}\n",
    )


def site_time(moment: datetime | None) -> datetime | None:
    """As the site's settings want times."""
    if moment is None or settings.USE_TZ:
        return moment
    return timezone.make_naive(moment)  # type: ignore[no-any-return]


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


_FIELDS = frozenset(field.name for field in fields(TaskCall))
_NEEDED = frozenset(field.name for field in fields(TaskCall) if field.default is MISSING)
_TIMES = ("started_at", "last_attempted_at", "finished_at")


def find_result(queue: SiteQueue, alias: str, result_id: str) -> Any:
    """Reads in the site's transaction if there is one, so that it finds what that enqueued."""
    id = _number(result_id)
    payload = queue.read(lambda engine: engine.inspection.payload(id))
    info = queue.read(lambda engine: engine.inspection.message(id))
    if payload is None or info is None:
        # Looked for last: a task may end between two looks.
        (stored,) = queue.read(lambda engine: engine.events.results([id]))
        return _ended(stored, alias, result_id)
    call = read_call(payload)
    if call is None or call.backend != alias:
        raise TaskResultDoesNotExist(result_id)
    attempts = queue.read(lambda engine: engine.inspection.history(id)) if info.attempt else []
    return result_of(call.find_task(), str(id), call, **_known(info, attempts))


def kept(call: TaskCall, result: Any) -> dict[str, Any]:
    """What is kept of a task that succeeded, when its message is gone."""
    return {
        "call": asdict(call),
        "times": {name: getattr(result, name).isoformat() for name in _TIMES},
        "worker_ids": result.worker_ids,
        "errors": [[error.exception_class_path, error.traceback] for error in result.errors],
        "return_value": result.return_value,
    }


def _ended(stored: StoredResult | None, alias: str, result_id: str) -> Any:
    found = None if stored is None else _object(stored.payload)
    call = None if found is None else _call_of(found.get("call"))
    if found is None or call is None or call.backend != alias:
        raise TaskResultDoesNotExist(result_id)
    return result_of(
        call.find_task(),
        result_id,
        call,
        status=TaskResultStatus.SUCCESSFUL,
        worker_ids=found["worker_ids"],
        errors=[error_of(path, None, traceback) for path, traceback in found["errors"]],
        return_value=found["return_value"],
        **{name: datetime.fromisoformat(text) for name, text in found["times"].items()},
    )


def earlier_attempts(entries: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Those in which the task was begun, the oldest first."""
    begun = [entry for entry in entries if entry.claimed_at is not None and not _unbegun(entry)]
    return sorted(begun, key=lambda entry: entry.id)


def errors_of(entries: Sequence[HistoryEntry]) -> list[Any]:
    return [error_of(e.error_type, e.error, None) for e in entries if e.error or e.error_type]


def _known(info: MessageInfo, history: Sequence[HistoryEntry]) -> dict[str, Any]:
    entries = earlier_attempts(history)
    workers = [entry.worker or "" for entry in entries]
    starts = [entry.started_at or entry.claimed_at for entry in entries]
    errors = errors_of(entries)
    known: dict[str, Any] = {}
    if info.state == "leased":
        workers.append(info.worker or "")
        starts.append(info.claimed_at)
        known["status"] = TaskResultStatus.RUNNING
    elif info.state == "dead":
        known["status"] = TaskResultStatus.FAILED
        known["finished_at"] = site_time(info.died_at)
        # The dead letter has the traceback; it may be all that is kept.
        errors[-1:] = [error_of(info.error_type, info.error or info.reason, info.traceback)]
        workers += [""] * (info.attempt - len(workers))
    if starts:
        known["started_at"] = site_time(starts[0])
        known["last_attempted_at"] = site_time(starts[-1])
    return {**known, "worker_ids": workers, "errors": errors}


def _unbegun(entry: HistoryEntry) -> bool:
    return entry.outcome == "given_back"


def _number(result_id: str) -> int:
    if isinstance(result_id, str) and result_id.isascii() and result_id.isdecimal():
        number = int(result_id)
        if number < 2**63:
            return number
    raise TaskResultDoesNotExist(result_id)


def read_call(payload: bytes) -> TaskCall | None:
    """None if another message has this id."""
    return _call_of(_object(payload))


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _call_of(found: Any) -> TaskCall | None:
    if not isinstance(found, dict) or not _NEEDED <= set(found) <= _FIELDS:
        return None
    return TaskCall(**found)
