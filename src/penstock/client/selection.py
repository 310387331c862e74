"""Which dead letters a call means."""

from collections.abc import Iterable

from penstock.errors import InvalidOption
from penstock.model import DeadLetterFilter
from penstock.names import check_kind, check_name

from .checks import check_ids, check_time

_ALL = DeadLetterFilter()


def selection(ids: Iterable[int] | None, by: DeadLetterFilter) -> list[int] | DeadLetterFilter:
    """Ids or filters, not both and not neither: nobody empties everything by leaving words out."""
    if ids is not None:
        if by != _ALL:
            raise InvalidOption("ids and filters exclude each other: give one")
        return check_ids(ids)
    if by == _ALL:
        raise InvalidOption("say which dead letters: ids, or at least one filter")
    return checked_filter(by)


def checked_filter(by: DeadLetterFilter) -> DeadLetterFilter:
    for what in ("queue", "channel"):
        if (name := getattr(by, what)) is not None:
            check_name(what, name)
    if by.kind is not None:
        check_kind(by.kind)
    if by.reason is not None and not isinstance(by.reason, str):
        raise InvalidOption(f"reason must be str, not {type(by.reason).__name__}")
    for what in ("since", "until"):
        if (time := getattr(by, what)) is not None:
            check_time(what, time)
    return by
