"""The pages by address: a function for each page."""

from collections.abc import Callable
from dataclasses import dataclass
from re import fullmatch

from laneway.errors import NotAllowed
from laneway.operator import VERBS
from laneway.web.context import Answer, Context
from laneway.web.request import NotFound

from . import (
    dead,
    flows,
    lists,
    messages,
    overview,
    queue,
)


@dataclass(frozen=True, slots=True)
class Page:
    """``needs`` is the verb it is made of: without it there is no such page. ``label`` is its name
    in the navigation, None if it is reached from another page."""

    show: Callable[[Context], Answer]
    needs: str
    template: str
    label: str | None = None
    live: bool = True


PAGES: dict[str, Page] = {
    "/": Page(overview.overview, "stats", "overview.html", "Overview"),
    "/queue": Page(queue.queue, "stats", "queue.html"),
    "/channels": Page(lists.channels, "channels", "channels.html", "Channels"),
    "/channel": Page(lists.channel, "channel", "channel.html"),
    "/messages": Page(messages.messages, "messages", "messages.html", "Messages"),
    "/dead-letters": Page(dead.dead_letters, "dead_letters", "dead.html", "Dead letters"),
    "/dead-letters/bulk": Page(dead.bulk, "count_dead_letters", "bulk.html", live=False),
    "/flows": Page(flows.flows, "flows", "flows.html", "Flows"),
    "/schedules": Page(lists.schedules, "schedules", "schedules.html", "Schedules"),
    "/topics": Page(lists.topics, "subscriptions", "topics.html", "Topics"),
    "/limits": Page(lists.limits, "channels", "limits.html", "Limits"),
    "/workers": Page(lists.workers, "workers", "workers.html", "Workers"),
    "/system": Page(lists.system, "settings", "system.html", "System"),
    "/audit": Page(lists.audit, "audit", "audit.html", "Audit"),
}
# By the beginning of an address that ends with a number.
NUMBERED = {
    "/messages": Page(messages.message, "message", "message.html"),
    "/flows": Page(flows.flow, "flow", "flow.html"),
}


def page_of(context: Context) -> Answer:
    """Raises NotFound, or NotAllowed before anything is read."""
    path = context.request.path
    found = fullmatch(r"(/[a-z]+)/\d{1,18}", path)
    page = NUMBERED.get(found[1]) if found else PAGES.get(path)
    if page is None or page.needs not in VERBS:
        raise NotFound("There is no such page.")
    if not context.may(page.needs):
        raise NotAllowed(f"{context.principal.name!r} may not see this page.")
    return page.show(context)


def navigation(context: Context) -> list[tuple[str, str, bool]]:
    """Address, label and whether it is this page, of what the principal may see."""
    here = context.request.path
    return [
        (
            context.link(path[1:]),
            page.label,
            here == path or (path != "/" and here.startswith(path)),
        )
        for path, page in PAGES.items()
        if page.label is not None and context.may(page.needs)
    ]
