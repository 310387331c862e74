"""What the settling calls are made of: checked items, progress, and errors as text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from laneway.contract import Engine
from laneway.durations import Duration, check_duration
from laneway.errors import InvalidOption, LeaseLost, shown
from laneway.inspection import MessageInfo
from laneway.limits import AttemptEnd
from laneway.model import (
    KEEP,
    Deferral,
    Extension,
    Failure,
    Keep,
    KeptResult,
    Progress,
    ProgressNote,
    Return,
    Settled,
)
from laneway.payload import kept_result
from laneway.plan import ClaimColumn as Column
from laneway.plan import Plan, Row
from laneway.shared_limits import LimitNote, limits_of, names_in

from .checks import check_delay_or_at, check_lease, check_storable
from .draft import draft_state
from .error_text import cut_traceback, said
from .message_fields import MessageFields

# How far a handler is: checked, and noted until the lease is next extended.

MOST_NOTE = 500
"""Characters; the rest of a note is cut off."""


def checked_progress(share: Any, note: Any) -> tuple[float | None, str | None]:
    if share is not None:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 <= share <= 1:
            raise InvalidOption(
                f"the progress is {shown(share)}: give a share from 0 to 1, or None"
            )
    elif note is None:
        raise InvalidOption("give a share from 0 to 1, a note, or both")
    said = None if note is None else check_storable("note", note, MOST_NOTE)
    return None if share is None else float(share), said


def notes_of(messages: Iterable[Any]) -> list[ProgressNote]:
    """What the holders said since the last time."""
    noted = ((message, getattr(message, "_progress", None)) for message in messages)
    return [ProgressNote(m.id, m.fence, *said) for m, said in noted if said is not None]


def with_progress(info: MessageInfo, progress: Progress | None) -> MessageInfo:
    """If it is of the same lease."""
    if progress is None or progress.fence != info.fence:
        return info
    return replace(info, progress=progress)


ERROR_CHARACTERS = 16 * 1024
Error = str | BaseException | None
WaitedLease = tuple[Row, int | None]


def waits(messages: Iterable[MessageFields]) -> dict[int, int]:
    """Milliseconds that each waited for its handler inside a worker, of those that did."""
    return {m.id: m._waited for m in messages if m._waited is not None}


def complete_after_waits(engine: Engine) -> Callable[[Sequence[WaitedLease]], Plan[list[Settled]]]:
    """The verb complete for pairs of a lease and its wait, if it has one."""

    def complete_after_waits(items: Sequence[WaitedLease]) -> Plan[list[Settled]]:
        waited = {lease[0]: wait for lease, wait in items if wait is not None}
        return engine.leases.complete([lease for lease, _ in items], waited)

    return complete_after_waits


CompletedLease = tuple[Row, int | None, KeptResult | None]


def complete_with_results(
    engine: Engine,
) -> Callable[[Sequence[CompletedLease]], Plan[list[Settled]]]:
    """The verb complete for a lease, its wait, and what is kept of it."""

    def complete_with_results(items: Sequence[CompletedLease]) -> Plan[list[Settled]]:
        waited = {lease[0]: wait for lease, wait, _ in items if wait is not None}
        kept = {(lease[0], lease[1]): result for lease, _, result in items if result is not None}
        return engine.leases.complete([lease for lease, _, _ in items], waited, kept)

    return complete_with_results


def limit_notes(
    engine: Engine, messages: Iterable[MessageFields], outcome: AttemptEnd
) -> list[LimitNote]:
    """What the shared limits that they name want to know; nothing of most messages."""
    named = ((m, limits_of(m._row[Column.HEADERS])) for m in messages if m._row[Column.HEADERS])
    return [
        LimitNote(name, message.id, message.fence, outcome)
        for message, limits in named
        if limits is not None
        for name in names_in(limits)
        if name not in engine.limits.plain_limits
    ]


def kept_notes(notes: Iterable[LimitNote], settled: Iterable[Settled]) -> list[LimitNote]:
    """Those of messages that were not lost."""
    ours = {(one.id, one.fence) for one in settled if not one.lost}
    return [note for note in notes if (note.id, note.fence) in ours]


def failed_as(error: Error) -> AttemptEnd:
    """How an attempt ended that failed."""
    return AttemptEnd.TIMED_OUT if isinstance(error, TimeoutError) else AttemptEnd.FAILED


def results_to_keep(
    messages: Sequence[MessageFields], results: Sequence[object] | None, most: int
) -> dict[tuple[int, int], KeptResult]:
    """Of those that ask for it."""
    if results is not None and len(results) != len(messages):
        raise InvalidOption(f"{len(results)} results for {len(messages)} messages: give one each")
    values = [None] * len(messages) if results is None else results
    return {
        (message.id, message.fence): kept_result(keep, value, most)
        for message, value in zip(messages, values, strict=True)
        if message._row[Column.HEADERS] and (keep := message.keep_result) is not None
    }


def deferrals(
    messages: Iterable[MessageFields],
    delay: Duration | None,
    at: datetime | None,
    state: object | Keep,
    reason: str | None,
    error: Error,
    most: int,
    trace: str | None = None,
) -> list[Deferral]:
    delay, at = check_delay_or_at(delay, at)
    keep = state is KEEP
    saved, saved_type = (None, None) if keep else draft_state(state, most)
    if reason is not None:
        reason = check_storable("reason", reason)
    rest = (delay, at, keep, saved, saved_type, reason, *error_text(error))
    kept = None if trace is None else cut_traceback(trace)
    return [Deferral(m.id, m.fence, *rest, m._waited, kept) for m in listed_messages(messages)]


def failures(
    messages: Iterable[MessageFields], reason: str, error: Error, trace: str | None = None
) -> list[Failure]:
    rest = (check_storable("reason", reason), *error_text(error))
    kept = None if trace is None else cut_traceback(trace)
    return [Failure(m.id, m.fence, *rest, m._waited, kept) for m in listed_messages(messages)]


def extensions(messages: Iterable[MessageFields], length: Duration) -> list[Extension]:
    length = check_lease(length, "length")
    return [Extension(m.id, m.fence, length) for m in listed_messages(messages)]


def returns(messages: Iterable[MessageFields], delay: Duration | None) -> list[Return]:
    if delay is not None:
        delay = check_duration("delay", delay)
    return [Return(m.id, m.fence, delay) for m in listed_messages(messages)]


def error_text(error: Error) -> tuple[str | None, str | None]:
    """The type and the text of an error."""
    if error is None:
        return None, None
    if isinstance(error, BaseException):
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        name = check_storable("error", module + kind.__qualname__)
        return name, _cut(said(error))
    return None, _cut(error)


def held(settled: Sequence[Settled]) -> Settled:
    """The only answer; raises LeaseLost if it says so."""
    (answer,) = settled
    if answer.lost:
        raise LeaseLost(
            f"message {answer.id} is no longer under our lease (fence {answer.fence}): it was "
            "settled already, or the lease ran out; call extend() during long work",
            answer.id,
            answer.fence,
        )
    return answer


def listed_messages(messages: Iterable[MessageFields]) -> Iterable[MessageFields]:
    if isinstance(messages, MessageFields):
        raise InvalidOption("pass a list of messages, or call the method on the message")
    return messages


def _cut(text: str) -> str:
    return check_storable("error", text, ERROR_CHARACTERS)
