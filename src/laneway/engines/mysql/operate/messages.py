"""Pages of messages. Each state is listed from the smallest table that has it, so many rows a page:
a filter that matches little makes a short page, not a long search."""

from collections.abc import Sequence

from laneway.engines.mysql.base import MysqlBase, repeatable
from laneway.engines.mysql.inspect import message_info
from laneway.engines.mysql.names import data, pair_id
from laneway.inspection import MessageFilter, MessagePage
from laneway.plan import Plan, Row

from .looks import ROWS

_WALK = 5_000
"""Rows that a page looks at. They are read in the order of their primary key; of leases, which are
joined with their messages, fewer."""


class MysqlMessageList(MysqlBase):
    @repeatable
    def messages(self, wanted: MessageFilter, limit: int, after: int) -> Plan[MessagePage]:
        if wanted.state == "dead":
            return (
                yield from self._walk("messages_dead", "messages_dead_end", wanted, limit, after)
            )
        if wanted.state == "leased":
            return (
                yield from self._walk(
                    "messages_leased", "messages_leased_end", wanted, limit, after
                )
            )
        if wanted.queue is not None and wanted.channel is not None:
            id = pair_id(wanted.queue.encode(), wanted.channel.encode())
            ((size,),) = yield self._statement("size_of_channel", id, ROWS)
            if int(size) < ROWS:
                options = (after, limit, data(wanted.state), self._now())
                rows = yield self._statement("messages_of_channel", id, data(wanted.kind), *options)
                return _page(rows, limit, None, int(size))
        return (yield from self._walk("messages", "messages_end", wanted, limit, after))

    def _walk(
        self, statement: str, ends: str, wanted: MessageFilter, limit: int, after: int
    ) -> Plan[MessagePage]:
        """Those among the next so many rows of a table; ``ends`` finds the last of these."""
        look = ROWS if wanted.state == "leased" else _WALK
        ((end, looked),) = yield self._statement(ends, after, look)
        if end is None:
            return MessagePage()
        names = data(wanted.queue), data(wanted.channel), data(wanted.kind)
        options = (data(wanted.state), self._now()) if statement == "messages" else ()
        rows = yield self._statement(statement, *names, after, limit, *options, int(end))
        more = int(end) if int(looked) >= look else None
        return _page(rows, limit, more, int(looked))


def _page(rows: Sequence[Row], limit: int, more: int | None, looked: int) -> MessagePage:
    found = [message_info(row) for row in rows]
    return MessagePage(found, found[-1].id if len(found) == limit else more, looked)
