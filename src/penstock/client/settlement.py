"""What the settling calls are made of: checked items, and errors as text."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from penstock.errors import InvalidOption, LeaseLost
from penstock.model import KEEP, Deferral, Extension, Failure, Keep, Return, Settled
from penstock.plan import Row

from .checks import check_delay_or_at, check_lease, check_length, check_storable
from .drafting import draft_state
from .fields import MessageFields, leases_of

ERROR_CHARACTERS = 16 * 1024
Error = str | BaseException | None


def leases(messages: Iterable[MessageFields]) -> list[Row]:
    return leases_of(_messages(messages))


def deferrals(
    messages: Iterable[MessageFields],
    delay: timedelta | None,
    at: datetime | None,
    state: object | Keep,
    reason: str | None,
    error: Error,
    most: int,
) -> list[Deferral]:
    delay, at = check_delay_or_at(delay, at)
    keep = state is KEEP
    saved, saved_type = (None, None) if keep else draft_state(state, most)
    if reason is not None:
        reason = check_storable("reason", reason)
    rest = (delay, at, keep, saved, saved_type, reason, *error_text(error))
    return [Deferral(m.id, m.fence, *rest) for m in _messages(messages)]


def failures(messages: Iterable[MessageFields], reason: str, error: Error) -> list[Failure]:
    rest = (check_storable("reason", reason), *error_text(error))
    return [Failure(m.id, m.fence, *rest) for m in _messages(messages)]


def extensions(messages: Iterable[MessageFields], length: timedelta) -> list[Extension]:
    length = check_lease(length)
    return [Extension(m.id, m.fence, length) for m in _messages(messages)]


def returns(messages: Iterable[MessageFields], delay: timedelta | None) -> list[Return]:
    if delay is not None:
        delay = check_length("delay", delay)
    return [Return(m.id, m.fence, delay) for m in _messages(messages)]


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


def said(error: BaseException) -> str:
    """Its text, also if it has trouble with saying it."""
    try:
        return str(error)
    except Exception as trouble:
        return f"<no text: {type(trouble).__name__}>"


def held(settled: Sequence[Settled]) -> Settled:
    """The only answer; raises LeaseLost if it says so."""
    (answer,) = settled
    if answer.lost:
        raise LeaseLost(
            f"the lease {answer.fence} of message {answer.id} is no longer ours: it ran out or "
            "was settled; undo the work if you can, and extend leases of long work",
            answer.id,
            answer.fence,
        )
    return answer


def _messages(messages: Iterable[MessageFields]) -> Iterable[MessageFields]:
    if isinstance(messages, MessageFields):
        raise InvalidOption("pass a list of messages, or call the method on the message")
    return messages


def _cut(text: str) -> str:
    return check_storable("error", text, ERROR_CHARACTERS)
