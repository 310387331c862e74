"""A schedule as the caller writes it to terms that an engine can keep."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from penstock.cron import next_tick
from penstock.errors import InvalidSchedule, shown
from penstock.model import Draft, NewMessage
from penstock.names import check_name
from penstock.payload import decode_json
from penstock.schedule import CatchUp, ScheduleTerms

from .checks import check_choice, check_length, check_time
from .drafting import draft_new

SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_CRON = 255
_CATCH_UP = ("skip", "once", "all")


def checked_terms(
    name: str,
    message: NewMessage,
    queue: str,
    most: int,
    *,
    cron: str | None,
    every: timedelta | None,
    zone: str | None,
    start: datetime | None,
    catch_up: CatchUp,
    grace: timedelta,
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
        grace=check_length("grace", grace),
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
    every = check_length("every", value)
    if every < SHORTEST_INTERVAL:
        raise InvalidSchedule(f"every is {every}: it must be at least one second")
    return every


def _message_terms(draft: Draft) -> dict[str, Any]:
    return {
        "channel": draft.channel,
        "kind": draft.kind,
        "key": draft.key,
        "key_window": draft.key_window,
        "priority": draft.priority,
        "headers": decode_json(draft.headers.encode()) if draft.headers else {},
        "content_type": draft.content_type,
        "payload": draft.payload,
        "expires_in": draft.expires_in,
        "max_attempts": draft.max_attempts,
    }
