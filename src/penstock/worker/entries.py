"""From an outcome to what an engine writes for it."""

from typing import Any, Literal, NamedTuple

from penstock.client.settlement import deferrals, failures, returns
from penstock.contract import Engine
from penstock.model import Held, Settled
from penstock.plan import Plan

from .job import Job
from .outcomes import Complete, Defer, Fail, GiveBack, Outcome

Verb = Literal["complete", "defer", "fail", "give_back"]


class Entry(NamedTuple):
    job: Job
    verb: Verb
    item: Any


def entry_for(job: Job, outcome: Outcome, most: int) -> Entry | None:
    """None if there is nothing to write; raises if it cannot be. ``most`` bounds a saved state."""
    if isinstance(outcome, Complete):
        return Entry(job, "complete", Held(job.id, job.fence))
    if isinstance(outcome, Defer):
        parts = (outcome.delay, outcome.at, outcome.state, outcome.reason, outcome.error)
        return Entry(job, "defer", deferrals([job], *parts, most)[0])
    if isinstance(outcome, Fail):
        return Entry(job, "fail", failures([job], outcome.reason, outcome.error)[0])
    if isinstance(outcome, GiveBack):
        return Entry(job, "give_back", returns([job], outcome.delay)[0])
    return None


def settling_plan(engine: Engine, verb: Verb, entries: list[Entry]) -> Plan[list[Settled]]:
    plan: Plan[list[Settled]] = getattr(engine, verb)([entry.item for entry in entries])
    return plan
