"""Topics: which queues get copies of what."""

from itertools import groupby

from laneway.topic import Subscription
from laneway.web.context import Context, PageView

_MOST = 1000


def topics(context: Context) -> PageView:
    found: list[Subscription] = sorted(context.read("subscriptions"))[:_MOST]
    grouped = [(name, list(rows)) for name, rows in groupby(found, key=lambda row: row.topic)]
    return PageView("topics.html", "Topics", {"topics": grouped, "cut": len(found) == _MOST})
