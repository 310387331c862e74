"""Hints for names that do not exist, so that a typo is noticed."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from laneway import Queue

_MAX_NAMES = 10


def no_match(client: "Queue", what: str, queue: str | None) -> str:
    """``No message matches.``, and if the queue is empty, which queues there are."""
    if queue is not None:
        queues = sorted({stats.queue for stats in client.stats()})
        if queue not in queues:
            found = existing("queues", queue, queues)
            return f"No {what} matches: queue {queue!r} has no messages; {found}."
    return f"No {what} matches."


def note_unused_channels(client: "Queue", names: Iterable[str]) -> None:
    """Channels need not exist to be limited or paused, but a name nobody uses may be a typo."""
    from laneway import Policy

    for name in names:
        channel = client.channel(name)
        stats = channel.stats()
        if channel.policy() == Policy() and not (
            stats.waiting or stats.scheduled or stats.leased or stats.dead
        ):
            say(
                f"Note: channel {name!r} of queue {client.name!r} has no messages and no limits; "
                "check the name with laneway channels."
            )


def existing(what: str, name: str, names: Iterable[str]) -> str:
    """The most similar name, or which names there are."""
    found = sorted(names)
    if close := get_close_matches(name, found, n=1):
        return f"perhaps {close[0]!r} is meant"
    if not found:
        return f"there are no {what}"
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return f"{what}: {', '.join(found[:_MAX_NAMES])}{more}"
