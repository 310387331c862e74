"""What operators ask for: filters of looks, pauses, bulk operations and the audit, as plans."""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar, cast

from laneway.contract import BATCH, Engine
from laneway.durations import Duration, check_duration
from laneway.errors import CountChanged, InvalidOption
from laneway.inspection import ChannelFilter, ChannelPage
from laneway.model import DeadLetterFilter, QueueStats
from laneway.names import check_kind, check_name
from laneway.operations import (
    AuditNote,
    BulkAction,
    MinuteFilter,
    Operation,
    OperationOrder,
    Preview,
)
from laneway.plan import Plan, Repeatable
from laneway.shared_limits import SharedLimit, why_held

from .checks import check_choice

# What may be asked of looks: filters of channels and of minutes.

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
_LONGEST_STEP = timedelta(days=14)


def check_flag(what: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidOption(f"{what} must be bool, not {type(value).__name__}")
    return value


def check_prefix(value: object) -> str:
    """The beginning of a name is a name, or empty."""
    return check_name("prefix", value) if value != "" else ""


def checked_minutes(
    since: datetime,
    until: datetime,
    step: Duration,
    queue: str | None,
    kind: str | None,
    by: str | None,
    times: bool,
) -> MinuteFilter:
    step = check_duration("step", step, MINUTE, _LONGEST_STEP)
    if step % MINUTE:
        raise InvalidOption(f"step is {step}: it must be whole minutes")
    if until <= since:
        raise InvalidOption("until must be later than since")
    if (until - since) / step > BATCH:
        raise InvalidOption(f"this is more than {BATCH} steps: take a longer step or less time")
    return MinuteFilter(
        since,
        until,
        step,
        None if queue is None else check_name("queue", queue),
        None if kind is None else check_kind(kind),
        None if by is None else _by(by),
        check_flag("times", times) is not False,
    )


def _by(value: str) -> Literal["queue", "kind"]:
    return cast(Literal["queue", "kind"], check_choice("by", value, ("queue", "kind")))


# Stats and channels, with the queues that are paused.


def stats_with_pauses(engine: Engine) -> Plan[list[QueueStats]]:
    stats = yield from engine.inspection.queue_stats()
    paused = yield from _paused_queues(engine, None)
    if not paused:
        return stats
    return [replace(one, paused=True) if one.queue in paused else one for one in stats]


def channels_with_pauses(
    engine: Engine, wanted: ChannelFilter, limit: int, after: str | None
) -> Plan[ChannelPage]:
    page = yield from engine.inspection.channels(wanted, limit, after)
    paused = yield from _paused_queues(engine, wanted.queue)
    if paused:
        for place, info in enumerate(page):
            if info.queue in paused:
                page[place] = replace(info, waits_for="queue paused")
    yield from _tell_limits(engine, page)
    yield from _tell_times(engine, page)
    return page


def _tell_limits(engine: Engine, page: ChannelPage) -> Plan[None]:
    """What waits for a shared limit is put back for later: only channels that have such messages
    are asked for."""
    asked: dict[str, dict[str, int]] = {}
    for place, info in enumerate(page):
        if info.waits_for is None and info.stats.scheduled:
            asked.setdefault(info.queue, {})[info.channel] = place
    limits: dict[str, SharedLimit] = {}
    for queue, places in asked.items():
        held = yield from engine.limits.limited_channels(queue, list(places))
        if held and not limits:
            limits = {limit.name: limit for limit in (yield from engine.limits.shared_limits())}
        for channel, names in held.items():
            place = places[channel]
            page[place] = replace(page[place], waits_for=why_held(names, limits))


def _tell_times(engine: Engine, page: ChannelPage) -> Plan[None]:
    """Which channels wait because they have had more worker time than others."""
    asked: dict[str, dict[str, int]] = {}
    for place, info in enumerate(page):
        if info.waits_for is None and info.stats.waiting:
            asked.setdefault(info.queue, {})[info.channel] = place
    for queue, places in asked.items():
        ahead = yield from engine.queues.time_ahead(queue, list(places))
        for channel, seconds in ahead.items():
            place = places[channel]
            page[place] = replace(page[place], waits_for=f"time {seconds:.1f} s ahead")


def _paused_queues(engine: Engine, queue: str | None) -> Plan[set[str]]:
    pauses = yield from engine.queues.pauses(queue)
    return {pause.queue for pause in pauses if pause.kind is None}


# Bulk operations on dead letters: what is asked for, and the plan that starts one.

PREVIEWED = 100_000
"""A preview counts no further."""
CHUNK = 1000
"""Letters in one step, which is one transaction."""
_SAMPLE = 5


def preview(engine: Engine, wanted: DeadLetterFilter) -> Plan[Preview]:
    count = yield from engine.dead_letters.count_dead_letters(wanted, PREVIEWED)
    sample = yield from engine.dead_letters.dead_letters(wanted, _SAMPLE, None)
    return Preview(int(count), count.or_more, list(sample))


def start(
    engine: Engine,
    action: BulkAction,
    wanted: DeadLetterFilter,
    expected: int | None,
    allowed: int,
    options: dict[str, Any],
    actor: str,
) -> Plan[Operation]:
    """Counts as a preview does and starts, in one transaction; refuses if the count is not as
    expected."""
    count = yield from engine.dead_letters.count_dead_letters(wanted, PREVIEWED)
    if expected is not None and abs(count - expected) > allowed:
        more = " or more" if count.or_more else ""
        raise CountChanged(
            f"{count:,}{more} dead letters match, not {expected:,}: look at a preview again",
            int(count),
        )
    total = None if count.or_more else int(count)
    order = OperationOrder(action, _plain(wanted), options, total, actor)
    return (yield from engine.operations.add_operation(order))


def _plain(wanted: DeadLetterFilter) -> dict[str, Any]:
    """For JSON."""
    found = {name: value for name, value in asdict(wanted).items() if value is not None}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in found.items()
    }


# Plans that write into the audit what they did.

T = TypeVar("T")


def noted(
    engine: Engine, plan: Plan[T], note: AuditNote, count: Callable[[T], int | None]
) -> Plan[T]:
    """The plan, and then the row of the audit with how many it changed; none if it changed nothing,
    such as a schedule that is not there."""

    def both(plan: Plan[T]) -> Plan[T]:
        answer = yield from plan
        affected = count(answer)
        if affected != 0:
            yield from engine.operations.add_audit(note._replace(affected=affected))
        return answer

    if isinstance(plan, Repeatable):
        return Repeatable(lambda: both(plan.again()))
    return both(plan)
