"""Channels: who waits and why, their limits, pause and resume."""

from laneway.inspection import ChannelInfo, ChannelPage
from laneway.web.context import PAGE_ROWS, Context, PageView
from laneway.web.rendering import visible

from .why import why


def channels(context: Context) -> PageView:
    """The fullest ones first, or those whose name begins with a text."""
    queue, search = context.text("queue"), context.text("search")
    paused = {"true": True, "false": False}.get(context.text("paused") or "")
    page: ChannelPage = context.read(
        "channels",
        queue=queue,
        prefix=search,
        paused=paused,
        limit=PAGE_ROWS,
        after=context.text("after"),
    )
    values = {
        "rows": [(info, why(info, context.now)) for info in page],
        "next": page.next,
        "looked": page.looked,
        "queue": queue,
        "search": search,
        "paused": context.text("paused"),
    }
    return PageView("channels.html", "Channels", values)


def channel(context: Context) -> PageView:
    """One channel, whether it holds anything or not."""
    name, queue = context.params.get("channel", ""), context.text("queue")
    info: ChannelInfo = context.read("channel", name, queue=queue)
    values = {
        "info": info,
        "why": why(info, context.now),
        "messages": context.read("messages", queue=info.queue, channel=info.channel, limit=20),
    }
    return PageView("channel.html", f"Channel {visible(info.channel)}", values)
