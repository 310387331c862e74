"""Bulk operations on dead letters: what is asked for, and the plan that starts one."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from laneway.contract import Engine
from laneway.errors import CountChanged
from laneway.model import DeadLetterFilter
from laneway.operations import BulkAction, Operation, OperationOrder, Preview
from laneway.plan import Plan

PREVIEWED = 100_000
"""A preview counts no further."""
CHUNK = 1000
"""Letters in one step, which is one transaction."""
_SAMPLE = 5


def preview(engine: Engine, wanted: DeadLetterFilter) -> Plan[Preview]:
    count = yield from engine.count_dead_letters(wanted, PREVIEWED)
    sample = yield from engine.dead_letters(wanted, _SAMPLE, None)
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
    count = yield from engine.count_dead_letters(wanted, PREVIEWED)
    if expected is not None and abs(count - expected) > allowed:
        more = " or more" if count.or_more else ""
        raise CountChanged(
            f"{count:,}{more} dead letters match, not {expected:,}: look at a preview again",
            int(count),
        )
    total = None if count.or_more else int(count)
    order = OperationOrder(action, _plain(wanted), options, total, actor)
    return (yield from engine.add_operation(order))


def _plain(wanted: DeadLetterFilter) -> dict[str, Any]:
    """For JSON."""
    found = {name: value for name, value in asdict(wanted).items() if value is not None}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in found.items()
    }
