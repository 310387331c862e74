"""What an operator looks at. Nothing here writes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from laneway.client.shared.checks import check_limit
from laneway.durations import Duration
from laneway.event import StoredResult
from laneway.inspection import (
    ChannelInfo,
    ChannelPage,
    DeadLetterCount,
    DeadLetterGroups,
    DeadLetterPage,
    DeadLetterPosition,
    Finding,
    MessageInfo,
    MessagePage,
    MessageState,
    Totals,
)
from laneway.model import ChannelStats, DeadLetter, HistoryEntry, QueueStats, Settings
from laneway.operations import AuditEntry, Minute, WorkerInfo

from .base import LOOKED, PAGE, Base
from .verbs import Right, verb

_FINDINGS_AGE = 60.0
"""Seconds. Pages ask for findings every few seconds; schema and settings seldom change, and to ask
for them costs more than all else. Where something was wrong, it is asked every time."""


class CountLooks(Base):
    """Queues and channels."""

    @verb(Right.VIEW, "filtered")
    def stats(self) -> list[QueueStats]:
        """How many messages are in which state, by queue. In a scope: added up over its channels
        among the fullest ones."""
        if not self.principal.scoped:
            return self._queue.stats()
        queues: dict[str, list[ChannelStats]] = defaultdict(list)
        for prefix in self._prefixes(None):
            for info in self._queue.channels(prefix=prefix, limit=LOOKED):
                queues[info.queue].append(info.stats)
        return [_added(name, queues[name]) for name in sorted(queues)]

    @verb(Right.VIEW, "filtered")
    def channels(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        prefix: str | None = None,
        paused: bool | None = None,
        limited: bool | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ChannelPage:
        """Channels with counts, limits and why they wait; the next page comes ``after=page.next``.
        In a scope of several prefixes: those of one prefix after the other."""
        if self._hidden(channel):
            return ChannelPage()
        by: dict[str, Any] = {"queue": queue, "channel": channel, "paused": paused}
        by |= {"limited": limited, "limit": limit}
        if not self.principal.scoped:
            return self._queue.channels(**by, prefix=prefix, after=after)
        prefixes = self._prefixes(prefix)
        number, _, position = (after or "0:").partition(":")
        if not number.isdigit() or int(number) >= len(prefixes):
            return ChannelPage()
        page = self._queue.channels(**by, prefix=prefixes[int(number)], after=position or None)
        if page.next is not None:
            page.next = f"{number}:{page.next}"
        elif int(number) + 1 < len(prefixes):
            page.next = f"{int(number) + 1}:"
        return page

    @verb(Right.VIEW, "checked")
    def channel(self, channel: str, *, queue: str | None = None) -> ChannelInfo:
        """One channel with its counts and limits; it need not exist."""
        self._check_channel("channel", channel)
        found = self._queue.channel(channel, queue=queue)
        page = self._queue.channels(queue=found.queue, channel=found.name, limit=1)
        if page:
            return page[0]
        return ChannelInfo(found.queue, found.name, found.stats(), found.policy())

    @verb(Right.VIEW, "refused")
    def totals(self) -> Totals:
        """Counters that only rise."""
        return self._queue.totals()

    @verb(Right.VIEW, "refused")
    def diagnose(self) -> Sequence[Finding]:
        """What is wrong, and how to mend it. Findings name queues, channels and settings."""
        database = self._queue.database
        return database.run(database.engine.maintenance.diagnose(_FINDINGS_AGE))

    @verb(Right.VIEW, "open")
    def clock(self) -> datetime:
        """The database's time."""
        return self._queue.clock()

    @verb(Right.VIEW, "open")
    def settings(self) -> Settings:
        """The settings of the schema."""
        return self._queue.settings()

    @verb(Right.VIEW_AUDIT, "refused")
    def audit(self, *, limit: int = 100, before: int | None = None) -> Sequence[AuditEntry]:
        """What operators did, the newest first."""
        return self._queue.audit(limit=limit, before=before)

    @verb(Right.VIEW, "open")
    def schema_version(self) -> int:
        """The number of the last migration."""
        return self._queue.schema_version()

    @verb(Right.VIEW, "refused")
    def minutes(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: Duration = 60,
        by: Literal["queue", "kind"] | None = None,
        times: bool = True,
    ) -> list[Minute]:
        """What happened by minute. The figures know no channels."""
        return self._queue.minutes(
            queue=queue, kind=kind, since=since, until=until, step=step, by=by, times=times
        )

    @verb(Right.VIEW, "refused")
    def workers(self, *, limit: int = 1000) -> list[WorkerInfo]:
        """Worker processes, as their heartbeats describe them."""
        return self._queue.workers(limit=limit)

    @verb(Right.VIEW, "refused")
    def dead_letter_groups(self, *, queue: str | None = None, limit: int = 100) -> DeadLetterGroups:
        """Dead letters by kind and error, the largest groups first."""
        return self._queue.dead_letters.groups(queue=queue, limit=limit)

    def _prefixes(self, asked: str | None) -> list[str]:
        """The beginnings of names that are both in the scope and asked for."""
        scope, asked = sorted(self.principal.channel_prefixes or ()), asked or ""
        # A prefix within another one would show its channels twice.
        apart = [p for p in scope if not any(p != q and p.startswith(q) for q in scope)]
        found = [asked if asked.startswith(p) else p for p in apart]
        return [p for p in found if p.startswith(asked)]


class MessageLooks(Base):
    """Messages and what became of them."""

    @verb(Right.VIEW, "filtered")
    def messages(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        state: MessageState | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> MessagePage:
        """Messages by id, without payloads; the next page comes ``after=page.next``. In a scope a
        page may hold fewer than ``limit``, or none, and not be the last one."""
        if self._hidden(channel):
            return MessagePage()
        page = self._queue.messages(
            queue=queue, channel=channel, kind=kind, state=state, limit=limit, after=after
        )
        seen = (info for info in page if self.principal.sees(info.channel))
        return MessagePage(seen, page.next, page.looked)

    @verb(Right.VIEW, "filtered")
    def message(self, message_id: int) -> MessageInfo | None:
        """Where a message is now; None once it has ended."""
        return self._visible(message_id)

    @verb(Right.VIEW_PAYLOADS, "filtered")
    def payload(self, message_id: int) -> bytes | None:
        """The payload of a message that has not ended."""
        return self._queue.payload(message_id) if self._visible(message_id) else None

    @verb(Right.VIEW_PAYLOADS, "filtered")
    def saved_state(self, message_id: int) -> bytes | None:
        """What a handler saved with a message that has not ended."""
        return self._queue.saved_state(message_id) if self._visible(message_id) else None

    @verb(Right.VIEW_PAYLOADS, "filtered")
    def stored_result(self, message_id: int) -> StoredResult | None:
        """What the handler of a message returned, while it is kept. In a scope only if the history
        tells the message's channel."""
        if self.principal.scoped and not self.history(message_id):
            return None
        return self._queue.stored_result(message_id)

    @verb(Right.VIEW, "filtered")
    def history(self, message_id: int) -> list[HistoryEntry]:
        """What happened to a message, oldest first."""
        entries = self._queue.history(message_id)
        return [entry for entry in entries if self.principal.sees(entry.channel)]

    @verb(Right.VIEW, "filtered")
    def dead_letters(
        self,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: DeadLetterPosition | None = None,
    ) -> DeadLetterPage:
        """Dead letters, the newest first; the next page comes ``after=page.next``. A page looks at
        10,000 at most, so it may hold fewer than ``limit``, or none, and not be the last one. Their
        payloads are left out: ``payload`` reads one."""
        if self._hidden(channel):
            return DeadLetterPage()
        by: dict[str, Any] = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        by |= {"since": since, "until": until, "error_type": error_type}
        page = self._letter_page(by, check_limit(limit), after)
        return DeadLetterPage(self._listed(page), page.next)

    @verb(Right.VIEW, "filtered")
    def count_dead_letters(
        self,
        ids: Iterable[int] | None = None,
        *,
        queue: str | None = None,
        channel: str | None = None,
        kind: str | None = None,
        reason: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10_000,
    ) -> DeadLetterCount:
        """How many dead letters a redrive with these arguments would take, up to ``limit``. With
        filters other than queue and times it looks at the newest 10,000."""
        if self._hidden(channel):
            return DeadLetterCount(0)
        by: dict[str, Any] = {"queue": queue, "channel": channel, "kind": kind, "reason": reason}
        by |= {"since": since, "until": until, "error_type": error_type}
        if self.principal.scoped and (ids is not None or channel is None):
            found, more = self._letters(ids, by)
            return DeadLetterCount(min(limit, len(found)), more or len(found) > limit)
        return self._queue.dead_letters.count(ids, **by, limit=limit)

    def _letters(self, ids: Iterable[int] | None, by: dict[str, Any]) -> tuple[list[int], bool]:
        """The ids of the letters that a call means, in a scope; and whether there may be more."""
        if ids is not None:
            found = (self._visible(id) for id in self._ids(ids))
            return [one.id for one in found if one is not None and one.state == "dead"], False
        page = self._letter_page(by, LOOKED, None)
        return [letter.id for letter in page], page.next is not None

    def _letter_page(
        self, by: dict[str, Any], limit: int, after: DeadLetterPosition | None
    ) -> DeadLetterPage:
        """The first ``limit`` in the scope, among the next LOOKED there are."""
        if not self.principal.scoped:
            return self._queue.dead_letters.list(**by, limit=limit, after=after)
        found: list[DeadLetter] = []
        for _ in range(0, LOOKED, PAGE):
            page = self._queue.dead_letters.list(**by, limit=PAGE, after=after)
            for letter in filter(lambda letter: self.principal.sees(letter.channel), page):
                found.append(letter)
                if len(found) == limit:
                    return DeadLetterPage(found, DeadLetterPosition(letter.died_at, letter.id))
            after = page.next
            # A page that is not full has looked at LOOKED already.
            if after is None or len(page) < PAGE:
                break
        return DeadLetterPage(found, after)


def _added(queue: str, channels: Sequence[ChannelStats]) -> QueueStats:
    due = [stats.oldest_due for stats in channels if stats.oldest_due is not None]
    return QueueStats(
        queue,
        sum(stats.waiting for stats in channels),
        sum(stats.scheduled for stats in channels),
        sum(stats.leased for stats in channels),
        sum(stats.dead for stats in channels),
        len(channels),
        min(due, default=None),
    )
