"""Part of publish: messages whose keys are in use, and that replace what has them.

A leased message is never touched: the new one waits behind it, scheduled for a time that never
comes, until that one has ended (``_start_behind``).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from laneway.engines.key_modes import Key, next_due, parked_due
from laneway.engines.times import micros
from laneway.model import Draft, Published
from laneway.plan import Plan

from .base import WriteState, listed
from .channel_rows import CountChanges, FoundChannel, SqliteChannelRows


class SqliteKeyOwner(NamedTuple):
    """A row of key_owners."""

    queue: str
    key: str
    id: int
    expires_at: int | None
    behind: int | None
    behind_due: int | None
    channel: str | None
    kind: str | None
    dead: int
    leased: int
    channel_id: int
    priority: int
    due: int
    published_at: int

    def replaced_by(self, draft: Draft) -> bool:
        """Within its window nothing is published, and another channel's message is not ours."""
        return self.expires_at is None and (self.channel, self.kind) == (draft.channel, draft.kind)


class SqliteReplace(SqliteChannelRows):
    def _replace(self, drafts: Sequence[Draft]) -> Plan[list[Published | None]]:
        """One after the other: a publish of many keys that are in use is rare."""
        count = len(drafts)
        state = yield from self._begin_write(ids=count, turns=count)
        rows = yield self._statement("key_owners", listed((d.queue, d.key) for d in drafts))
        owners: dict[Key, SqliteKeyOwner] = {(row[0], row[1]): SqliteKeyOwner(*row) for row in rows}
        changes, parked, more = CountChanges(), list[int](), Counter[int]()
        results: list[Published | None] = []
        for number, draft in enumerate(drafts):
            owner = owners.get((draft.queue, draft.key or ""))
            if owner is None or not owner.replaced_by(draft):
                results.append(None if owner is None else Published(owner.id, "existing"))
            elif owner.dead:
                yield self._statement("free_dead_key", owner.queue, owner.key)
                yield self._statement("forget_dead_key", owner.id)
                results.append(None)
            else:
                found = yield from self._channels([(draft.queue, draft.channel)], state.now)
                channel = found[draft.queue, draft.channel]
                if channel.closing:
                    results.append(Published(None, "closed"))
                elif not owner.leased:
                    yield from self._change(owner, draft, changes, state)
                    results.append(Published(owner.id, "replaced"))
                elif channel.room is not None and channel.room <= more[channel.id]:
                    results.append(Published(None, "full"))
                else:
                    parked.append(state.message_id + number)
                    more[channel.id] += 1
                    yield from self._park(parked[-1], draft, channel, changes, state)
                    results.append(Published(parked[-1], "published"))
        yield from self._update_counts(changes, state)
        yield from self._add_events("published", parked, state)
        return results

    def _change(
        self, owner: SqliteKeyOwner, draft: Draft, changes: CountChanges, state: WriteState
    ) -> Plan[None]:
        """A message that waits gets the new content, and perhaps another place."""
        assert draft.mode is not None
        bound = None if draft.mode.debounce_for is None else micros(draft.mode.debounce_for)
        wanted = state.now + micros(draft.delay) if draft.delay else state.now
        old = owner.due if owner.behind_due is None else owner.behind_due
        due = next_due(state.now, wanted, old, owner.published_at, bound)
        if owner.behind is not None:
            yield self._statement("set_behind_due", owner.queue, owner.key, due)
            due = owner.due
        place = (owner.channel_id, owner.priority, owner.due, owner.id)
        yield self._many("delete_waiting", [place])
        yield from self._no_longer_waiting([owner.id], state)
        yield self._statement(
            "replace_message",
            owner.id,
            draft.priority,
            due,
            draft.max_attempts,
            draft.content_type,
            draft.payload,
            _expiry(draft, state.now),
            micros(draft.key_window),
            draft.headers,
        )
        yield self._statement("add_waiting_again", listed([owner.id]))
        yield from self._now_waiting([owner.id], state)
        changes.add(owner.channel_id, priority=draft.priority, due=due)

    def _park(
        self,
        id: int,
        draft: Draft,
        channel: FoundChannel,
        changes: CountChanges,
        state: WriteState,
    ) -> Plan[None]:
        """A new message, behind the running one that has its key."""
        due = parked_due(id)
        row: tuple[Any, ...] = (
            *(id, channel.id, draft.priority, due, state.now, draft.max_attempts, draft.kind),
            *(draft.content_type, draft.payload, _expiry(draft, state.now), draft.key),
            *(micros(draft.key_window), draft.headers),
        )
        yield self._statement("add_message", *row)
        yield self._statement("add_waiting", id, id)
        yield from self._now_waiting([id], state)
        later = state.now + micros(draft.delay) if draft.delay else state.now
        later = later if draft.at is None else micros(draft.at)
        yield self._statement("park", draft.queue, draft.key, id, later)
        changes.add(channel.id, more=1, priority=draft.priority, due=due)


def _expiry(draft: Draft, now: int) -> int | None:
    if draft.expires_at is not None:
        return micros(draft.expires_at)
    return None if draft.expires_in is None else now + micros(draft.expires_in)
