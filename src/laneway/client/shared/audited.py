"""Plans that write into the audit what they did."""

from collections.abc import Callable
from typing import TypeVar

from laneway.contract import Engine
from laneway.operations import AuditNote
from laneway.plan import Plan, Repeatable

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
            yield from engine.add_audit(note._replace(affected=affected))
        return answer

    if isinstance(plan, Repeatable):
        return Repeatable(lambda: both(plan.again()))
    return both(plan)
