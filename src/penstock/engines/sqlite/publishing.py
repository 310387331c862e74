"""publish: keys, gates, then the messages and their channels' counts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from penstock.contract import BATCH
from penstock.model import Draft, Published, PublishStatus
from penstock.plan import Plan

from .base import listed
from .moves import Moves, Moving
from .naming import Gate, Names, Naming
from .times import micros

_PUBLISHED: PublishStatus = "published"
_PLAIN = 9  # columns that every message has
_NOTHING_MORE = (None,) * 4


class Publishing(Naming, Moving):
    def publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        answers: list[Published] = []
        for start in range(0, len(drafts), BATCH):
            answers += yield from self._publish(drafts[start : start + BATCH])
        return answers

    def _publish(self, drafts: Sequence[Draft]) -> Plan[list[Published]]:
        count = len(drafts)
        state = yield from self._begin(ids=count, turns=count)
        owners = yield from self._owners(drafts, state.now)
        names = list(dict.fromkeys((d.queue, d.channel) for d in drafts))
        gates = yield from self._channels(names, state.now)
        answers = _judged(drafts, state.message_id, owners, gates)
        moves = Moves()
        rows = _rows(drafts, answers, gates, state.now, moves)
        if rows:
            yield from self._reserve(drafts, answers)
            yield from self._add(rows)
            yield from self._move(moves, state)
            yield from self._tell("published", [row[0] for row in rows], state)
        return answers

    def _add(self, rows: Sequence[tuple[Any, ...]]) -> Plan[None]:
        """Most messages have no key, headers or expiry, and every null costs as much as two
        numbers."""
        if plain := [row[:_PLAIN] for row in rows if row[_PLAIN:] == _NOTHING_MORE]:
            yield self._each("add_plain_message", plain)
        if len(plain) < len(rows):
            yield self._each("add_message", [r for r in rows if r[_PLAIN:] != _NOTHING_MORE])
        yield self._say("add_waiting", rows[0][0], rows[-1][0])

    def _owners(self, drafts: Sequence[Draft], now: int) -> Plan[dict[Names, int]]:
        """The ids of the messages that live under the batch's keys."""
        wanted = {(d.queue, d.key) for d in drafts if d.key is not None}
        if not wanted:
            return {}
        rows = yield self._say("keys", listed(wanted), now)
        return {(queue, key): message_id for queue, key, message_id in rows}

    def _reserve(self, drafts: Sequence[Draft], answers: Sequence[Published]) -> Plan[None]:
        taken = [
            (draft.queue, draft.key, answer.id)
            for draft, answer in zip(drafts, answers, strict=True)
            if draft.key is not None and answer.status == _PUBLISHED
        ]
        if taken:
            yield self._say("reserve_keys", listed(taken))


def _judged(
    drafts: Sequence[Draft],
    first_id: int,
    owners: dict[Names, int],
    gates: dict[Names, Gate],
) -> list[Published]:
    """What happens to each, in order. A namesake in the batch shares its first one's fate."""
    answers = []
    fates: dict[Names, Published] = {key: Published(id, "existing") for key, id in owners.items()}
    admitted = dict.fromkeys(gates, 0)
    for number, draft in enumerate(drafts):
        key = None if draft.key is None else (draft.queue, draft.key)
        answer = fates.get(key) if key else None
        if answer is None:
            channel = draft.queue, draft.channel
            answer = _admitted(gates[channel], admitted[channel], first_id + number)
            admitted[channel] += answer.id is not None
            if key:
                again: PublishStatus = "existing" if answer.id is not None else answer.status
                fates[key] = Published(answer.id, again)
        answers.append(answer)
    return answers


def _admitted(gate: Gate, before: int, id: int) -> Published:
    """``before``: how many of the batch this channel has taken already."""
    if gate.closing:
        return Published(None, "closed")
    if gate.room is not None and before >= gate.room:
        return Published(None, "full")
    return Published(id, _PUBLISHED)


def _rows(
    drafts: Sequence[Draft],
    answers: Sequence[Published],
    gates: dict[Names, Gate],
    now: int,
    moves: Moves,
) -> list[tuple[Any, ...]]:
    """What is inserted, and what it does to the channels."""
    rows = []
    for draft, answer in zip(drafts, answers, strict=True):
        if answer.status != _PUBLISHED:
            continue
        channel_id = gates[draft.queue, draft.channel].id
        due = _time(draft.at, draft.delay, now)
        due = now if due is None else due
        moves.add(channel_id, more=1, priority=draft.priority, due=due)
        rows.append(
            (
                answer.id,
                channel_id,
                draft.priority,
                due,
                now,
                draft.max_attempts,
                draft.kind,
                draft.content_type,
                draft.payload,
                _time(draft.expires_at, draft.expires_in, now),
                draft.key,
                micros(draft.key_window),
                draft.headers,
            )
        )
    return rows


def _time(at: datetime | None, length: timedelta | None, now: int) -> int | None:
    if at is not None:
        return micros(at)
    return None if length is None else now + micros(length)
