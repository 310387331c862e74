"""A schedule as the caller writes it to terms that an engine can keep."""

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from laneway.cron import next_tick
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidSchedule, shown
from laneway.model import Draft, KeyScope, Names, NewMessage
from laneway.names import check_name
from laneway.payload import decode_json
from laneway.schedule import CatchUp, ScheduleTerms

from .checks import check_choice, check_time
from .draft import TaskTarget, draft_new

_PLAIN = NewMessage(None, "default")
SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_CRON = 255
_CATCH_UP = ("skip", "once", "all")


def scheduled_message(
    payload: Any,
    channel: str,
    queue: str | None,
    kind: str,
    key: str | None,
    key_window: Duration | None,
    headers: Mapping[str, Any] | None,
    priority: int,
    expires_in: Duration | None,
    max_attempts: int | None,
    content_type: str | None,
    limits: Names | None = None,
    key_scope: KeyScope = "kind",
) -> NewMessage:
    """What each tick publishes. A task, or a call of one, brings its own; what is given beside it
    replaces that."""
    given = NewMessage(
        payload,
        channel,
        queue,
        kind,
        key,
        key_window,
        headers,
        priority,
        expires_in=expires_in,
        max_attempts=max_attempts,
        content_type=content_type,
        limits=limits,
        key_scope=key_scope,
    )
    if isinstance(payload, TaskTarget):
        payload = payload.message()
    if not isinstance(payload, NewMessage):
        return given
    for name in ("delay", "at", "expires_at"):
        if getattr(payload, name) is not None:
            raise InvalidSchedule(f"the message has {name}=: a schedule says when; leave it out")
    if payload.on_duplicate != "keep":
        raise InvalidSchedule(
            f"the message has on_duplicate={payload.on_duplicate!r}: a tick of a schedule never "
            "replaces a message; leave it out"
        )
    names = [field.name for field in fields(NewMessage) if field.name != "payload"]
    changed = {n: v for n in names if (v := getattr(given, n)) != getattr(_PLAIN, n)}
    return replace(payload, **changed)


def checked_terms(
    name: str,
    message: NewMessage,
    queue: str,
    most: int,
    *,
    cron: str | None,
    every: Duration | None,
    zone: str | None,
    start: datetime | None,
    catch_up: CatchUp,
    grace: Duration,
    topic: str | None,
) -> ScheduleTerms:
    """Raises InvalidSchedule, InvalidOption or InvalidTime; what is wrong is never stored."""
    if (cron is None) == (every is None):
        raise InvalidSchedule("a schedule has either cron= or every=: give one of them")
    kept = cast(CatchUp, check_choice("catch_up", catch_up, _CATCH_UP))
    draft = draft_new(message, queue, "default", most)
    terms = ScheduleTerms(
        queue=draft.queue,
        name=check_name("schedule", name),
        cron=None if cron is None else _cron(cron),
        every=None if every is None else _interval(every, zone),
        zone="UTC" if zone is None else check_name("zone", zone),
        start=None if start is None else check_time("start", start).astimezone(UTC),
        catch_up=kept,
        grace=check_duration("grace", grace),
        topic=None if topic is None else check_name("topic", topic),
        **_message_terms(draft),
    )
    now = datetime.now(UTC)
    next_tick(terms, terms.start or now, now)  # raises what a firing would otherwise run into
    return terms


def _cron(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidSchedule(f"cron must be str, not {type(value).__name__}")
    if len(value) > LONGEST_CRON:
        raise InvalidSchedule(f"the cron expression {shown(value)} is too long")
    return str.__str__(value)


def _interval(value: object, zone: str | None) -> timedelta:
    if zone is not None:
        raise InvalidSchedule("an interval has no time zone: use cron= for times of the day")
    every = check_duration("every", value)
    if every < SHORTEST_INTERVAL:
        raise InvalidSchedule(f"every is {every}: it must be at least one second")
    return every


def _message_terms(draft: Draft) -> dict[str, Any]:
    return {
        "channel": draft.channel,
        "kind": draft.kind,
        "key": draft.key,
        "key_window": draft.key_window,
        "key_scope": draft.key_scope or "kind",
        "priority": draft.priority,
        "headers": decode_json(draft.headers.encode()) if draft.headers else {},
        "content_type": draft.content_type,
        "payload": draft.payload,
        "expires_in": draft.expires_in,
        "max_attempts": draft.max_attempts,
    }
