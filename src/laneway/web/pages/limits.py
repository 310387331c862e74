"""Limits: every channel that has any, to change in place."""

from laneway.inspection import ChannelPage
from laneway.web.context import PAGE_ROWS, Context, PageView

from .why import why


def limits(context: Context) -> PageView:
    queue, prefix = context.text("queue"), context.text("search")
    page: ChannelPage = context.read(
        "channels",
        queue=queue,
        prefix=prefix,
        limited=True,
        limit=PAGE_ROWS,
        after=context.text("after"),
    )
    values = {
        "rows": [(info, why(info, context.now)) for info in page],
        "next": page.next,
        "looked": page.looked,
        "queue": queue,
        "search": prefix,
    }
    return PageView("limits.html", "Limits", values)
