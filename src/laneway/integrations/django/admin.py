"""Django's tasks in the admin: what waits, runs and has failed; retry and cancel.

Read from the queue page by page, with a bounded look: there is no table of Django's behind it.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from laneway.inspection import MessageInfo
from laneway.operator import ADMIN, Operator, Principal

from .models import QueuedTask
from .site_queue import SiteQueue
from .task_message import kind_of, read_call
from .task_runner import laneway_backends

PAGE = 50
STATES = {"waiting": "Ready", "scheduled": "Later", "leased": "Running", "dead": "Failed"}
_queue = SiteQueue()


@admin.register(QueuedTask)
class QueuedTaskAdmin(admin.ModelAdmin):  # type: ignore[misc]
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            self._act(request)
            return HttpResponseRedirect(request.get_full_path())
        state = request.GET.get("state", "waiting")
        aliases = laneway_backends()
        backend = request.GET.get("backend", aliases[0] if aliases else "default")
        after = request.GET.get("after", "0")
        if state not in STATES or not (after.isascii() and after.isdecimal()):
            raise Http404
        page = _queue.messages(
            kind=kind_of(backend), state=state, limit=PAGE, after=min(int(after), 2**63 - 1)
        )
        context = {
            **self.admin_site.each_context(request),
            "title": "Tasks",
            "opts": self.model._meta,
            "states": [
                (name, label, name == state, _link(state=name, backend=backend))
                for name, label in STATES.items()
            ],
            "backends": [
                (alias, alias == backend, _link(state=state, backend=alias)) for alias in aliases
            ],
            "rows": [_row(info) for info in page],
            "next": page.next and _link(state=state, backend=backend, after=page.next),
            "may_act": self.has_change_permission(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "laneway/admin/tasks.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = _queue.message(int(object_id)) if object_id.isdecimal() else None
        if found is None:
            raise Http404
        if request.method == "POST":
            self._act(request)
            return HttpResponseRedirect("../../")
        context = {
            **self.admin_site.each_context(request),
            "title": f"Task {found.id}",
            "opts": self.model._meta,
            "row": _row(found),
            "info": found,
            "may_act": self.has_change_permission(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "laneway/admin/task.html", context)

    def _act(self, request: HttpRequest) -> None:
        if not self.has_change_permission(request):
            raise PermissionDenied
        ids = [int(id) for id in request.POST.getlist("id") if id.isdecimal()]
        operator = Operator(
            _queue.client, Principal(request.user.get_username(), ADMIN), source="dashboard"
        )
        action = request.POST.get("action")
        if not ids or action not in ("retry", "cancel"):
            messages.warning(request, "No task was chosen.")
            return
        done = _retry(operator, ids) if action == "retry" else _cancel(operator, ids)
        said = {"retry": "due now", "cancel": "cancelled, or asked to stop"}[action]
        messages.info(request, f"{done} of {len(ids)} tasks are {said}.")


def _retry(operator: Operator, ids: Iterable[int]) -> int:
    """Failed ones run again, later ones now."""
    failed, others = _by_state(ids)
    done = operator.redrive(failed) if failed else 0
    return done + sum(answer.status == "due" for answer in operator.run_now(others))


def _cancel(operator: Operator, ids: Iterable[int]) -> int:
    """Failed ones are removed, running ones asked to stop."""
    failed, others = _by_state(ids)
    done = operator.discard(failed) if failed else 0
    answers = operator.cancel(others, running=True)
    return done + sum(answer.status in ("cancelled", "requested") for answer in answers)


def _by_state(ids: Iterable[int]) -> tuple[list[int], list[int]]:
    """The failed ones, and the others."""
    infos = [info for id in ids if (info := _queue.message(id)) is not None]
    failed = [info.id for info in infos if info.state == "dead"]
    return failed, [info.id for info in infos if info.state != "dead"]


def _row(info: MessageInfo) -> dict[str, Any]:
    payload = _queue.payload(info.id)
    call = None if payload is None else read_call(payload)
    return {
        "id": info.id,
        "task": info.kind if call is None else call.task,
        "args": [] if call is None else call.args,
        "kwargs": {} if call is None else call.kwargs,
        "priority": info.priority if call is None else call.priority,
        "state": STATES[info.state],
        "queue": info.queue,
        "channel": info.channel,
        "attempt": info.attempt,
        "enqueued_at": info.first_published_at,
        "due": info.due,
        "worker": info.worker,
        "error": info.error_type and f"{info.error_type}: {info.error}",
    }


def _link(**words: Any) -> str:
    return f"?{urlencode(words)}"
