"""Which dead letters a call means."""

from collections.abc import Iterable

from penstock.errors import InvalidOption
from penstock.model import DeadLetterFilter
from penstock.names import check_kind, check_name

from .checks import check_ids, check_storable, check_time

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
    return DeadLetterFilter(
        None if by.queue is None else check_name("queue", by.queue),
        None if by.channel is None else check_name("channel", by.channel),
        None if by.kind is None else check_kind(by.kind),
        None if by.reason is None else check_storable("reason", by.reason),
        None if by.since is None else check_time("since", by.since),
        None if by.until is None else check_time("until", by.until),
    )
